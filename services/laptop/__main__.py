"""`python -m windlass.services.laptop`: what `windlass up` becomes."""

import sys

from windlass.services.laptop.up import up

raise SystemExit(up(reload="--reload" in sys.argv[1:]))
