"""What `make bench` writes: the parts that were not measured anew stay, and what is missed is said."""

import json
from pathlib import Path
from typing import Any

from bench import plots, report, tables
from bench.figures import Figure
from bench.report import Part

AROUND: dict[str, Any] = {
    "versions": {"Python": "3.11.7", "Postgres": "15.18"},
    "cores": 2,
    "durability": {"fsync": "on"},
}
REACHED = Figure("a page", "5 ms", "< 10 ms", {"p50_ms": 5.0}, reached=True)
MISSED = Figure("a task", "12 | 13 ms", "< 10 ms", {"p50_ms": 12.0}, reached=False)


def part(*figures: Figure, date: str = "2026-11-16", commit: str = "abc123", **around: Any) -> Part:
    return report.a_part(figures, date=date, commit=commit, surroundings={**AROUND, **around})


def test_a_run_of_one_part_replaces_it_and_keeps_the_others_with_their_day() -> None:
    old = {"engine": part(MISSED, date="2026-11-01"), "api": part(REACHED, date="2026-11-01")}
    new = report.with_part(old, "api", part(MISSED), ["engine", "api"])
    assert report.figures_of(new["api"]) == [MISSED]
    assert new["api"]["date"] == "2026-11-16"
    assert new["engine"] == old["engine"]


def test_parts_stand_in_their_order_whichever_was_measured_first() -> None:
    later = report.with_part({"streams": part()}, "engine", part(), ["engine", "api", "streams"])
    assert list(later) == ["engine", "streams"]


def test_a_part_that_is_not_known_any_more_is_kept() -> None:
    assert list(report.with_part({"former": part()}, "api", part(), ["api"])) == ["api", "former"]


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    report.keep({"api": part(REACHED, MISSED)}, tmp_path)
    assert report.figures_of(report.load(tmp_path)["api"]) == [REACHED, MISSED]


def test_before_the_first_run_there_is_nothing(tmp_path: Path) -> None:
    assert report.load(tmp_path) == {}


def test_numbers_are_kept_to_six_figures(tmp_path: Path) -> None:
    report.keep({"api": part(Figure("x", "", "", {"ms": 1.23456789, "tasks": 2000000}))}, tmp_path)
    kept = json.loads((tmp_path / "figures.json").read_text())
    assert kept["api"]["figures"][0]["numbers"] == {"ms": 1.23457, "tasks": 2000000}


def test_the_table_says_what_is_not_reached_at_its_beginning_and_in_its_place() -> None:
    text = tables.as_text({"api": part(REACHED, MISSED)})
    head, _, body = text.partition("## The API")
    assert "| The API | a task | 12 \\| 13 ms | < 10 ms |" in head
    assert "a page" not in head
    assert "| a page | 5 ms | < 10 ms | yes |" in body
    assert "| a task | 12 \\| 13 ms | < 10 ms | **no** |" in body


def test_the_table_says_from_when_and_from_which_commit_each_part_is() -> None:
    text = tables.as_text({"api": part(REACHED), "streams": part(REACHED, date="2026-11-01", commit="")})
    assert "Measured 2026-11-16 at abc123: `make bench BENCH=api`." in text
    assert "Measured 2026-11-01: `make bench BENCH=streams`." in text
    assert "Every aim is reached." in text


def test_surroundings_that_differ_name_the_parts_they_hold_for() -> None:
    text = tables.as_text({"api": part(REACHED), "engine": part(REACHED, cores=8)})
    assert "| cores | 2 (api) |" in text
    assert "| cores | 8 (engine) |" in text
    assert "| Postgres: fsync | on |" in text


def test_only_what_was_measured_is_drawn(tmp_path: Path) -> None:
    numbers = {"streams": 100, "p50_ms": 4.0, "p99_ms": 20.0}
    plots.keep({"streams": part(Figure("100 streams", "", "", numbers, label="100 streams"))}, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["streams.svg"]


def test_the_table_shows_the_pictures_of_each_part() -> None:
    numbers = {"streams": 100, "p50_ms": 4.0, "p99_ms": 20.0}
    text = tables.as_text({"api": part(REACHED), "streams": part(Figure("100 streams", "", "", numbers))})
    assert "](streams.svg)" in text.partition("## Streams")[2]
    assert "](api.svg)" not in text


def test_the_table_says_when_the_machine_was_busy_with_other_things() -> None:
    calm = tables.as_text({"api": part(REACHED)})
    busy = tables.as_text({"api": {**part(REACHED), "load": 27.4}})
    assert "busy" not in calm
    assert "(load 27 on 2 cores)" in busy


def test_every_line_of_the_table_says_how_busy_the_machine_was() -> None:
    loads = {"api": 0.3, "streams": 1.24, "engine": 27.4}
    text = tables.as_text({name: {**part(MISSED), "load": load} for name, load in loads.items()})
    for said in ("idle", "load 1.2", "**busy**, load 27.4"):
        assert f"| a task | 12 \\| 13 ms | < 10 ms | **no** | {said} |" in text
        assert f"| a task | 12 \\| 13 ms | < 10 ms | {said} |" in text


def test_what_the_proof_shows_is_drawn_from_the_numbers_that_are_kept() -> None:
    kept = report.load()
    assert (report.PLACE / "tables.md").read_text() == tables.as_text(kept), "run `python -m bench --draw`"
    for name, picture in plots.drawn(kept).items():
        assert (report.PLACE / f"{name}.svg").read_text() == picture, f"{name}: run `python -m bench --draw`"
