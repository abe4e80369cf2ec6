"""What each provider can be asked for, as its adapter declares it: what a form is drawn from."""

import logging
from typing import Any

from windlass.shared.errors import words_of
from windlass.shared.settings import Settings

log = logging.getLogger("api")


class Capabilities:
    """Read from each adapter once: they change with the program, not while it runs."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: dict[str, list[dict[str, Any]]] = {}

    def of(self, provider: str) -> dict[str, Any]:
        """`{actions: [{action, params_schema}]}`; no action where the work is not ordered by actions, and where the
        adapter cannot be loaded here."""
        if provider not in self._known:
            self._known[provider] = self._read(provider)
        return {"actions": self._known[provider]}

    def _read(self, provider: str) -> list[dict[str, Any]]:
        configured = self._settings.providers.get(provider)
        if configured is None or "media" not in configured.actors:
            return []
        # An api that nobody asks for it does without the adapters and what they import.
        from windlass.shared.providers.params import actions_of  # noqa: PLC0415
        from windlass.shared.providers.registry import adapter_of  # noqa: PLC0415

        try:
            actions = actions_of(adapter_of(self._settings, provider)) or {}
        except Exception as error:  # noqa: BLE001 - an adapter may be anybody's, and is imported here for the first time
            log.warning("what %s takes is not known here: %s", provider, words_of(error))
            return []
        return [
            {"action": action, "params_schema": params.model_json_schema()}
            for action, params in sorted(actions.items())
        ]
