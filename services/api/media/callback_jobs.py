"""Which job a callback is about: read by the adapter that speaks to its provider, loaded when the first one comes."""

import logging
from typing import Any

from windlass.shared.errors import TaskError, words_of
from windlass.shared.settings import Settings
from windlass.shared.toml_tables import Endpoint

log = logging.getLogger("api")

NOWHERE = Endpoint("https://nowhere.invalid", "")


def job_of(settings: Settings, provider: str, body: Any) -> str | None:
    """The provider's id of the job, or none where it cannot be told. What comes from outside never breaks anything."""
    # An api that nobody calls back does without them.
    import httpx  # noqa: PLC0415

    from windlass.shared.providers.registry import adapter_of  # noqa: PLC0415

    try:
        # The api asks no provider anything, and need not have its key: this client reaches nobody.
        nobody = httpx.AsyncClient(transport=httpx.AsyncBaseTransport())
        job_id = adapter_of(settings, provider)(provider, NOWHERE, nobody).job_of_callback(body)
    except TaskError as error:
        log.warning("nobody reads the callbacks of %s: %s", provider, words_of(error))
        return None
    except Exception as error:  # noqa: BLE001 - an adapter may be anybody's, and the body is a stranger's
        log.warning("a callback of %s cannot be read: %s", provider, words_of(error))
        return None
    return job_id if job_id and isinstance(job_id, str) and "\0" not in job_id else None
