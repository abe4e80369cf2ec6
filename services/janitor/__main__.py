"""`python -m services.janitor`: what `windlass janitor` becomes."""

from services.janitor.main import main

if __name__ == "__main__":
    main()
