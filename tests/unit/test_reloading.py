"""Which files `windlass up --reload` watches, and what it calls a change."""

import os
from pathlib import Path

import pytest

from windlass.services.laptop.reloading.registering import mistake_in
from windlass.services.laptop.reloading.sources import changed, look, named, places_of
from windlass.shared.settings import Settings

CONFIG = """
[actors.paint]
module = "our_app.actors"
[actors.resize]
function = "our_app.images:resize"
[actors.count]
isolate = true
[actors.probe]
timeout_seconds = 5
"""


def write(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text("")


def test_all_that_the_settings_load_actors_from(tmp_path: Path) -> None:
    file = tmp_path / "windlass.toml"
    file.write_text(CONFIG)
    settings = Settings(config=file, actor_modules=("our_actors.py",))
    assert named(settings) == ["our_actors.py", "our_app.actors", "our_app.images"]


def test_files_and_packages_are_found_without_importing_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "lib/our_app_a/__init__.py", "lib/our_app_a/actors.py", "lib/our_module_a.py", "own/our_actors.py")
    (tmp_path / "lib/our_app_a/__init__.py").write_text("raise RuntimeError")
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    assert places_of(["our_app_a.actors"]) == [tmp_path / "lib/our_app_a"]
    assert places_of(["our_module_a", "our_app_a.actors"]) == [tmp_path / "lib"], "which has the other inside"
    assert places_of([str(tmp_path / "own/our_actors.py"), "nowhere_to_be_found"]) == [tmp_path / "own"]


def test_of_what_is_installed_a_module_is_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "site-packages/our_module_b.py", "site-packages/our_app_b/__init__.py")
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    assert places_of(["our_module_b"]) == [tmp_path / "site-packages/our_module_b.py"]
    assert places_of(["our_app_b.actors"]) == [tmp_path / "site-packages/our_app_b"]
    assert look(places_of(["our_module_b"])).keys() == {str(tmp_path / "site-packages/our_module_b.py")}


def test_what_nobody_writes_is_not_looked_at(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "deep/er/b.py", "notes.txt", ".hidden/c.py", "__pycache__/d.py")
    write(tmp_path, "env/pyvenv.cfg", "env/lib/e.py", "node_modules/f.py")
    assert look([tmp_path]).keys() == {str(tmp_path / "a.py"), str(tmp_path / "deep/er/b.py")}


def test_a_change_is_a_file_that_is_new_or_gone_or_written(tmp_path: Path) -> None:
    write(tmp_path, "same.py", "written.py", "gone.py")
    before = look([tmp_path])
    (tmp_path / "gone.py").unlink()
    write(tmp_path, "new.py")
    os.utime(tmp_path / "written.py", ns=(1, 1))
    assert [Path(each).name for each in changed(before, look([tmp_path]))] == ["gone.py", "new.py", "written.py"]
    assert changed(before, before) == []


@pytest.mark.parametrize(("line", "said"), [
    ("10:12:13 ERROR   register: WINDLASS_ACTORS: a.py cannot be imported", "WINDLASS_ACTORS: a.py cannot be imported"),
    ('{"level":"error","logger":"register","message":"a.py cannot be imported"}', "a.py cannot be imported"),
    ("10:12:13 INFO    register: registered: probe", None),
    ('{"level":"info","logger":"register","message":"registered: probe"}', None),
    ("ERROR register: printed by somebody", None),
    ("3", None),
])  # fmt: skip
def test_a_mistake_is_told_from_what_else_is_said(line: str, said: str | None) -> None:
    assert mistake_in(line) == said
