"""Writes the OpenAPI document, with the actors that come with Windlass: what the types are drawn from."""

import json
import sys

from windlass.services.api.actors.registry import built_in_actors
from windlass.services.api.main import create_app
from windlass.services.api.reference.openapi import complete
from windlass.shared.settings import Settings


def main() -> None:
    settings = Settings()
    document = complete(create_app(settings).openapi_schema.to_schema(), built_in_actors(), settings)
    json.dump(document, sys.stdout, indent=1, sort_keys=True, default=str)


if __name__ == "__main__":
    main()
