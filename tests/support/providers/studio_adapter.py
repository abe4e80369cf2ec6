"""An adapter of an operator's own, as far as callbacks need one."""

from typing import Any


class Adapter:
    """Reads `{"job": {"id": …}}`."""

    def __init__(self, name: str, endpoint: Any, http: Any) -> None:
        self.made_with = (name, endpoint, http)

    def job_of_callback(self, body: Any) -> str | None:
        return body["job"]["id"]  # type: ignore[no-any-return]
