"""Places that a drill holds or kills at: spent by the first who comes, and looked for only where they may be."""

import asyncio
import threading
from pathlib import Path

from tests.chaos.pipeline.places import Places
from tests.support.waiting import wait_until
from windlass.services.actors.worker.failpoints import FAILPOINTS, HOLD, Failpoints
from windlass.shared.settings import Settings


def settings(directory: Path, *, probe_faults: bool = True) -> Settings:
    return Settings(data_dir=directory, probe_faults=probe_faults)


def test_each_has_a_name_of_its_own() -> None:
    assert len(set(FAILPOINTS)) == len(FAILPOINTS)


def test_the_first_who_comes_is_held_until_it_is_let_go_and_nobody_else_is(tmp_path: Path) -> None:
    places = Places(tmp_path)
    failpoints = Failpoints.of_the_pipeline(settings(tmp_path))
    places.hold("thread-entered")
    first = threading.Thread(target=failpoints.reach, args=("thread-entered",), daemon=True)
    first.start()
    places.wait_until_held("thread-entered")
    failpoints.reach("thread-entered")
    assert first.is_alive()
    places.let_all_go()
    first.join(60)
    assert not first.is_alive()


def test_a_loop_goes_round_while_somebody_on_it_is_held(tmp_path: Path) -> None:
    places = Places(tmp_path)
    failpoints = Failpoints.of_the_pipeline(settings(tmp_path))
    places.hold("loop-entered")

    async def on_a_loop() -> None:
        held = asyncio.create_task(failpoints.reach_async("loop-entered"))
        await asyncio.to_thread(places.wait_until_held, "loop-entered")
        assert not held.done()
        places.let_all_go()
        await held

    asyncio.run(on_a_loop())


def test_where_nobody_may_wait_the_step_is_taken_later(tmp_path: Path) -> None:
    places, taken = Places(tmp_path), list[str]()
    failpoints = Failpoints.of_the_pipeline(settings(tmp_path))
    places.hold("loop-granted")
    failpoints.go_on("loop-granted", taken.append, "held")
    failpoints.go_on("loop-granted", taken.append, "at once")
    assert taken == ["at once"]
    places.let_all_go()
    wait_until("it goes on", lambda: taken == ["at once", "held"])


def test_nobody_looks_for_places_that_have_no_folder_or_where_faults_are_off(tmp_path: Path) -> None:
    of_a_process_before = Failpoints.of_the_pipeline(settings(tmp_path))
    places = Places(tmp_path)
    (tmp_path / "failpoints" / "media-ordered").write_text(HOLD)
    places.hold("thread-entered")
    of_a_process_before.reach("thread-entered")
    Failpoints.of_the_pipeline(settings(tmp_path, probe_faults=False)).reach("thread-entered")
    Failpoints(settings(tmp_path, probe_faults=False)).reach("media-ordered")
    assert (tmp_path / "failpoints" / "media-ordered").exists()
