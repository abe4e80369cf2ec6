"""`python -m services.actors`: what `windlass actors` becomes, a guardian that starts its worker."""

from services.actors.guardian import main

if __name__ == "__main__":
    main()
