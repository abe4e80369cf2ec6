"""Every expression of the rules and dashboards can be read, and names only what the code says."""

import re

import pytest

from tests.monitoring.promql import Mistake, result_labels
from tests.monitoring.written import Expression, alerts, all_expressions, panel_expressions
from windlass.shared.metrics import catalogue


@pytest.mark.parametrize("expression", all_expressions(), ids=str)
def test_it_names_only_metrics_labels_and_values_that_there_are(expression: Expression) -> None:
    result_labels(expression.filled())


def test_every_metric_is_on_a_panel_or_in_a_rule() -> None:
    """What nobody looks at need not be counted."""
    looked_at = " ".join(each.text for each in all_expressions())
    declared = {each.name for part in catalogue.parts() for each in part.metrics}
    assert {name for name in declared if not re.search(rf"\b{name}(_bucket|_sum|_count)?\b", looked_at)} == set()


@pytest.mark.parametrize("expression", list(panel_expressions()), ids=str)
def test_a_legend_names_labels_that_its_lines_have(expression: Expression) -> None:
    assert set(re.findall(r"{{(\w+)}}", expression.legend)) <= result_labels(expression.filled())


def test_an_alert_says_only_labels_that_it_has() -> None:
    for alert in alerts():
        said = " ".join(alert["annotations"].values())
        has = result_labels(alert["expr"]) | alert["labels"].keys()
        assert set(re.findall(r"\$labels\.(\w+)", said)) <= has, alert["alert"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sum(rate(windlass_task_total[5m]))", "nobody says windlass_task_total"),
        ("windlass_task_run_seconds", "nobody says windlass_task_run_seconds"),
        ('windlass_tasks{lane="fresh"}', "no label lane"),
        ('windlass_tasks_finished_total{outcome=~"completed|failed"}', "outcome is never failed"),
        ('windlass_attempt_errors_total{error_type="OOM"}', "error_type is never OOM"),
        ("sum by (queue) (windlass_provider_slots_held)", "queue cannot be grouped by"),
        ("max by (queue) (windlass_queue_depth) / max by (provider) (windlass_provider_slots_held)", "never meet"),
        ("windlass_queue_depth unless on (queue) windlass_provider_paused", "queue is not on both sides"),
        ("histogram_quantile(0.5, sum(rate(windlass_task_run_seconds_bucket[5m])))", "without le"),
    ],
)
def test_a_mistake_is_found(text: str, complaint: str) -> None:
    with pytest.raises(Mistake, match=complaint):
        result_labels(text)
