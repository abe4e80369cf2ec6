"""The dashboards are what Grafana can show and a tired person can read."""

import itertools
import re
from typing import Any

import pytest

from tests.monitoring.written import dashboards, panels

EXPECTED = ("overview", "providers", "queue", "workers", "api-and-streams")


def test_all_are_there_and_have_names_of_their_own() -> None:
    assert dashboards().keys() == set(EXPECTED)
    for key in ("uid", "title"):
        assert len({dashboard[key] for dashboard in dashboards().values()}) == len(EXPECTED)
    assert all(len(dashboard["uid"]) <= 40 for dashboard in dashboards().values())  # Grafana's own limit


@pytest.mark.parametrize("name", EXPECTED)
def test_no_two_panels_have_one_id_or_one_place(name: str) -> None:
    every = dashboards()[name]["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    for one, other in itertools.combinations(every, 2):
        assert not overlap(one["gridPos"], other["gridPos"]), (one["title"], other["title"])
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in every)


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    across = one["x"] < other["x"] + other["w"] and other["x"] < one["x"] + one["w"]
    return across and one["y"] < other["y"] + other["h"] and other["y"] < one["y"] + one["h"]


@pytest.mark.parametrize("name", EXPECTED)
def test_it_begins_with_a_row_and_no_row_is_empty(name: str) -> None:
    kinds = [panel["type"] == "row" for panel in dashboards()[name]["panels"]]
    assert kinds[0]
    assert not kinds[-1]
    assert not any(one and other for one, other in itertools.pairwise(kinds))


@pytest.mark.parametrize("name", EXPECTED)
def test_every_panel_says_what_is_good_and_in_which_unit(name: str) -> None:
    titles = [panel["title"] for panel in panels(dashboards()[name])]
    assert len(set(titles)) == len(titles)
    for panel in panels(dashboards()[name]):
        assert len(panel["description"]) > 20, panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["targets"]
        if len(panel["targets"]) > 1:
            legends = [target["legendFormat"] for target in panel["targets"]]
            assert len(set(legends)) == len(legends)


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_counted_by_the_second_is_called_by_its_name(name: str) -> None:
    """Grafana's own word for a rate says "req/s", whatever is counted."""
    units = {panel["title"]: panel["fieldConfig"]["defaults"]["unit"] for panel in panels(dashboards()[name])}
    assert [title for title, unit in units.items() if unit == "reqps" and not title.startswith("Requests")] == []


@pytest.mark.parametrize("name", EXPECTED)
def test_nothing_but_the_chosen_datasource_is_asked(name: str) -> None:
    dashboard = dashboards()[name]
    assert dashboard["templating"]["list"][0]["type"] == "datasource"
    assert set(find(dashboard, "uid")) - {dashboard["uid"]} == {"${datasource}"}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_variable_that_is_used_can_be_chosen(name: str) -> None:
    dashboard = dashboards()[name]
    chosen = {variable["name"] for variable in dashboard["templating"]["list"]}
    texts = [text for key in ("expr", "definition") for text in find(dashboard, key)]
    used = {word for text in texts for word in re.findall(r"\$(\w+)", text)} - {"__rate_interval"}
    assert used == chosen - {"datasource"}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_dashboard_leads_to_the_others(name: str) -> None:
    (link,) = dashboards()[name]["links"]
    assert link["type"] == "dashboards"
    assert all(set(link["tags"]) <= set(other["tags"]) for other in dashboards().values())


def test_a_click_leads_to_a_dashboard_where_that_can_be_chosen() -> None:
    ways = [
        (panel, link["url"])
        for dashboard in dashboards().values()
        for panel in panels(dashboard)
        for link in panel["fieldConfig"]["defaults"].get("links", [])
    ]
    assert ways
    by_uid = {dashboard["uid"]: dashboard for dashboard in dashboards().values()}
    for panel, url in ways:
        uid, label = re.search(r"^/d/([\w-]+)\?var-(\w+)=", url).groups()  # type: ignore[union-attr]
        assert label in {variable["name"] for variable in by_uid[uid]["templating"]["list"]}
        assert all(f"{{{{{label}}}}}" in target["legendFormat"] for target in panel["targets"])


def find(document: Any, key: str) -> list[str]:
    """Every text under this key, however deep."""
    if isinstance(document, list):
        return [text for each in document for text in find(each, key)]
    if not isinstance(document, dict):
        return []
    here = [document[key]] if isinstance(document.get(key), str) else []
    return here + [text for each in document.values() for text in find(each, key)]
