"""`python -m windlass.services.janitor`: what `windlass janitor` becomes."""

from windlass.services.janitor.main import main

if __name__ == "__main__":
    main()
