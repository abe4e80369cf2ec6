"""`python -m windlass.services.cli`: what the `windlass` script calls."""

from windlass.services.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
