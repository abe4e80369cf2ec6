"""`python -m windlass.services.fake_providers`: what `windlass up` starts when a provider has no key."""

from windlass.services.fake_providers.main import main

if __name__ == "__main__":
    main()
