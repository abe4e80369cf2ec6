"""An actor as clients read it."""

from typing import Any

from windlass.shared.actors.definition import Definition
from windlass.shared.settings import Settings
from windlass.shared.submission.known import KnownActor


def summary(known: KnownActor, settings: Settings) -> dict[str, Any]:
    definition, terms = known.definition, known.terms(settings)
    return {
        "name": definition.name,
        "description": definition.description,
        "built_in": known.is_built_in,
        "default_provider": definition.provider,
        "providers": known.providers(settings),
        "timeout_seconds": terms.timeout_seconds,
        "max_retries": terms.max_retries,
        "max_age_seconds": terms.max_age_seconds,
        "version": known.versions[0].version.name,
        "workers": sum(len(each.workers) for each in known.versions),
    }


def whole_document(known: KnownActor, settings: Settings, *, with_workers: bool) -> dict[str, Any]:
    """Hosts and processes are not for users."""
    definition = known.definition
    return {
        **summary(known, settings),
        "payload_schema": definition.payload_schema,
        "result_schema": definition.result_schema,
        "example": example_payload(definition),
        "throws": list(definition.throws),
        "concurrency_key": list(known.terms(settings).concurrency_key),
        "versions": [
            {
                "version": each.version.name,
                "live_workers": len(each.workers),
                "workers": list(each.workers) if with_workers else None,
            }
            for each in known.versions
        ],
    }


def example_payload(definition: Definition) -> dict[str, Any]:
    """Its own example where the schema has one, else the plainest."""
    # Made when somebody asks: an api that nobody asks does without what draws documents.
    from windlass.services.api.reference.examples import example_of  # noqa: PLC0415

    schema = definition.payload_schema
    example = example_of(schema, schema.get("$defs", {}))
    return example if isinstance(example, dict) else {}
