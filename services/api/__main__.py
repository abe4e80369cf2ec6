"""`python -m windlass.services.api`: what `windlass api` becomes."""

from windlass.services.api.main import main

if __name__ == "__main__":
    main()
