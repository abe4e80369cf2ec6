"""Workflows in files: YAML as its version 1.2 reads it, and JSON, which is a part of it."""

from pathlib import Path
from typing import Any

import pytest

from windlass.services.cli.commands.workflows.files import Unreadable, document_from


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{key: a, on: ended}", {"key": "a", "on": "ended"}),
        ("{$from: draft, path: /a/0}", {"$from": "draft", "path": "/a/0"}),
        (
            "[yes, no, off, true, false, null, 3, -0.5, 12:30]",
            ["yes", "no", "off", True, False, None, 3, -0.5, "12:30"],
        ),
        ("run_at: 2026-07-01T12:00:00Z", {"run_at": "2026-07-01T12:00:00Z"}),
        ('{"on": true, "text": "a\\u00e9\\n", "n": 1e3}', {"on": True, "text": "aé\n", "n": 1000.0}),
    ],
)
def test_a_document_is_what_json_would_make_of_it(tmp_path: Path, written: str, meant: Any) -> None:
    (tmp_path / "flow.yaml").write_text(written)
    assert document_from(str(tmp_path / "flow.yaml")) == meant


def test_no_object_of_pythons_own_is_made(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text("!!python/object/apply:os.getpid []")
    with pytest.raises(Unreadable, match="neither YAML nor JSON"):
        document_from(str(tmp_path / "flow.yaml"))
