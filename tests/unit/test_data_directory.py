"""What `windlass up` reports about its data directory."""

from pathlib import Path

import pytest

from windlass.services.laptop.data_directory import GIGABYTE, warning


@pytest.mark.parametrize(
    ("free", "total", "warns"),
    [(0.9, 10, True), (1.1, 10, False), (4, 100, True), (6, 100, False), (9, 2000, True), (11, 2000, False)],
)
def test_a_nearly_full_disk_is_reported(free: float, total: float, warns: bool) -> None:
    reported = warning(Path("/data"), int(free * GIGABYTE), int(total * GIGABYTE))
    assert (reported is not None) is warns
    assert reported is None or f"{free:.1f} of {total:.1f} GB are free at /data; make room" in reported
