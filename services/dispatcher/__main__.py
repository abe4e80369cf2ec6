"""`python -m services.dispatcher`: what `windlass dispatcher` becomes."""

from services.dispatcher.main import main

if __name__ == "__main__":
    main()
