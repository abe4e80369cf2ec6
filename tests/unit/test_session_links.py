"""Where the page leads from a task: to what was configured, and only those who see everybody's work."""

import pytest
from pydantic import ValidationError

from windlass.services.api.access.sessions import links_for
from windlass.shared.settings import Settings

GRAFANA = "https://grafana.example/d/windlass-providers?var-provider={provider}&from={from}&to={to}"


def test_operators_are_led_to_what_is_configured() -> None:
    configured = Settings(grafana_url=GRAFANA)
    assert links_for("admin", configured) == links_for("viewer", configured) == {"Grafana": GRAFANA}
    assert links_for("admin", Settings()) == {}


def test_users_are_not() -> None:
    assert links_for("user", Settings(grafana_url=GRAFANA, traces_url="https://traces.example/{task_id}")) == {}


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(ValidationError):
        Settings(traces_url="javascript:alert(1)")
