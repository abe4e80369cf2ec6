"""The watch over processes sees whoever says which task it works for, for as long as it lives."""

import subprocess
import sys

from tests.chaos.judge.processes import ProcessWatch, is_alive, working_for
from tests.chaos.record import Record
from tests.support.waiting import wait_until


def test_a_process_that_names_its_task_is_seen_until_it_is_dead() -> None:
    record = Record()
    watch = ProcessWatch(record)
    environment = {"WINDLASS_TASK_ID": "the-task"}
    with subprocess.Popen([sys.executable, "-c", "input()"], env=environment, stdin=subprocess.PIPE) as process:
        wait_until("its name", lambda: (process.pid, "the-task") in working_for())
        watch.look()
        (sighting,) = [each for each in record.sightings if each.task_id == "the-task"]
        assert (sighting.pid, sighting.task_id) == (process.pid, "the-task")
        watch.look()
        assert sighting.last_at > sighting.first_at
        process.kill()
        wait_until("its end", lambda: not is_alive(process.pid))
        last_at = sighting.last_at
        watch.look()
        assert sighting.last_at == last_at, "a zombie has ended"
