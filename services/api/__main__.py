"""`python -m services.api`: what `windlass api` becomes."""

from services.api.main import main

if __name__ == "__main__":
    main()
