"""`python -m windlass.services.dispatcher`: what `windlass dispatcher` becomes."""

from windlass.services.dispatcher.main import main

if __name__ == "__main__":
    main()
