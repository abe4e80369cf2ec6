"""`python -m windlass.services.laptop`: what `windlass up` becomes."""

from windlass.services.laptop.up import up

raise SystemExit(up())
