"""What /proc says about processes is read in one module."""

import os
import re
from pathlib import Path

from windlass.shared.process import procfs

ROOT = Path(__file__).parents[2]
READS_PROC = re.compile(r'"/proc(?:/|"\))')


def test_no_other_module_reads_proc() -> None:
    modules = [each for room in ("services", "shared", "windlass/client") for each in (ROOT / room).rglob("*.py")]
    assert len(modules) > 200
    assert [each.name for each in modules if READS_PROC.search(each.read_text())] == ["procfs.py"]


def test_a_program_s_name_may_hold_anything() -> None:
    fields = [b"S", b"7", *(b"%d" % number for number in range(5, 55))]
    stat = procfs.Stat(3, b"3 (a) Z 1 (b c)) " + b" ".join(fields))
    assert (stat.pid, stat.parent, stat.is_running, stat.started) == (3, 7, True, 22)
    assert stat.resident_bytes == 24 * procfs.PAGE_BYTES
    assert stat.cpu_seconds == (14 + 15) / procfs.TICKS_PER_SECOND
    assert stat.waited_cpu_seconds == (16 + 17) / procfs.TICKS_PER_SECOND


def test_of_who_is_gone_nothing_is_told() -> None:
    nobody = 2**22 + 1  # no process number is larger than this
    assert procfs.stat_of(nobody) is None
    assert not procfs.initial_environment(nobody)
    assert not list(procfs.open_files(nobody))
    assert procfs.fair_share_bytes(nobody) == procfs.data_bytes(nobody) == 0


def test_a_process_can_read_about_itself() -> None:
    me = os.getpid()
    assert procfs.ProcessIdentity.of(me) in procfs.running_processes()
    assert procfs.fair_share_bytes(me) > 0
    assert procfs.threads_of(os.getuid()) > 0
    descriptor = os.open(__file__, os.O_RDONLY)
    try:
        assert os.fstat(descriptor) in list(procfs.open_files(me))
        assert Path(procfs.path_of(descriptor)).samefile(__file__)
    finally:
        os.close(descriptor)
