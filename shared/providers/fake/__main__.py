"""`python -m shared.providers.fake`: what `windlass up` starts when a provider has no key."""

from shared.providers.fake.main import main

if __name__ == "__main__":
    main()
