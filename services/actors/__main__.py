"""`python -m windlass.services.actors`: what `windlass worker` becomes, a guardian that starts its worker."""

from windlass.services.actors.guardian import main

if __name__ == "__main__":
    main()
