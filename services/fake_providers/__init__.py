"""A server that speaks as OpenRouter, Leonardo and midapi do, for laptops without keys and for tests.

`python -m windlass.services.fake_providers` serves at `WINDLASS_FAKE_PROVIDERS_URL`. What it can be made to do is
listed in `behaviour.py`; `control.py` is how it is told so, and how it is asked what it has seen.
"""
