"""`python -m services.cli`: what the `windlass` script calls."""

from services.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
