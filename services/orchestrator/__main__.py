"""`python -m windlass.services.orchestrator`: what `windlass orchestrator` becomes."""

from windlass.services.orchestrator.main import main

if __name__ == "__main__":
    main()
