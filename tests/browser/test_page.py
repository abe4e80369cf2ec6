"""The page in a real browser: what a person does first, and what must never go wrong."""

import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from playwright.sync_api import Browser, expect

from tests.acceptance.conftest import let_the_next_attempt_be_short
from tests.browser.orders import a_project, a_workflow, approvals_in_the_audit_log, flow, new_key, read, task_of
from tests.browser.visitor import PATIENCE_MS, Visitor
from tests.support.installation import KEY
from tests.support.media_installation import Studio
from tests.support.registrations import own_actor, register
from tests.support.waiting import wait_until

OFFERED = "main button:visible, main input[type=checkbox], main [draggable=true]"
HOSTILE = """<img src=x onerror="window.hurt=1"></script><script>window.hurt=1</script>"""


def test_a_wrong_key_is_refused_and_a_right_one_signs_in_and_out(stranger: Visitor) -> None:
    stranger.goes_to("/tasks")
    stranger.is_asked_for_a_key()
    stranger.page.get_by_label("Key").fill("wl_tests1_this-is-not-the-one-that-opens")
    stranger.presses("Sign in")
    stranger.sees("this key opens nothing")
    stranger.signs_in_with(KEY)
    assert stranger.page.url.endswith("/tasks"), "where they wanted to go"
    assert "wl_" not in stranger.page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    )
    stranger.presses("Sign out")
    stranger.is_asked_for_a_key()
    stranger.reloads()
    stranger.is_asked_for_a_key()


def test_a_link_signs_in_once(house: Studio, stranger: Visitor, chromium: Browser) -> None:
    url = house.client.http.post("/api/v1/session-links").raise_for_status().json()["url"]
    stranger.goes_to(url)
    stranger.is_in()
    assert "#" not in stranger.page.url, "nobody reads it off the screen"
    with Visitor.comes(chromium, house.windlass.url) as second:
        second.goes_to(url)
        second.is_asked_for_a_key()


def test_a_picture_with_a_reload_in_the_middle_is_made_once(house: Studio, admin: Visitor) -> None:
    admin.goes_to("/new/media")
    admin.page.get_by_role("textbox", name="prompt", exact=True).fill(
        "a fox in the snow, a reload in the middle [[seconds=10]]"
    )
    admin.page.get_by_label("provider", exact=True).select_option("leonardo")
    admin.presses("Submit")
    task_id = admin.task_id()
    admin.sees_the_task("running")
    admin.reloads()
    admin.sees_the_task("completed")
    task = house.client.get(task_id)
    pictures = admin.page.get_by_role("list", name="Media").get_by_role("img")
    expect(pictures).to_have_count(len(task["result"]["content_ids"]))
    for picture in pictures.all():
        picture.scroll_into_view_if_needed()
        picture.evaluate("(image) => image.decode()")
    expect(admin.page.locator(".attempts li")).to_have_count(1)
    assert house.client.story(task_id).count("complete") == 1
    assert len(house.orders_of(task_id)) == 1


def test_two_tabs_live_side_by_side(house: Studio, admin: Visitor) -> None:
    list_of_all, one = admin, admin.opens_another_tab()
    shown = house.client.submit(payload={"seconds": 0}, tags=["shown"])["task_id"]
    list_of_all.goes_to("/tasks?tag=shown")
    list_of_all.sees_its_row(shown)
    list_of_all.sees_it_live()
    task_id = house.client.submit(payload={"seconds": 2, "steps": 4}, tags=["shown"])["task_id"]
    one.goes_to(f"/tasks/{task_id}")
    one.is_in()
    list_of_all.presses("1 new")
    row = list_of_all.sees_its_row(task_id)
    for tab in (list_of_all, one):
        tab.page.bring_to_front()
        mark = row if tab is list_of_all else tab.page.locator(".badge")
        expect(mark).to_contain_text("completed", timeout=PATIENCE_MS)
    expect(list_of_all.page.locator("ul.tasks > li")).to_have_count(2)


def test_what_is_hostile_is_text_wherever_it_is_shown(house: Studio, admin: Visitor) -> None:
    prompt = f"{HOSTILE} moderated"
    order: dict[str, Any] = {
        "actor": "media",
        "provider": "leonardo",
        "task_type": HOSTILE[:60],
        "tags": [HOSTILE[:40]],
    }
    died = house.client.submit(**order, payload={"action": "txt2img", "prompt": prompt})["task_id"]
    said = house.client.submit(payload={"result": HOSTILE}, tags=[HOSTILE])["task_id"]
    assert house.client.finished(died)["status"] == "dead"
    house.client.finished(said)
    asking = a_workflow(house, {"key": "ask", "approval": {"message": HOSTILE}}, name=HOSTILE[:60], tags=[HOSTILE[:40]])
    flows = ["/workflows", f"/workflows/{asking}", "/approvals", f"/tasks/{task_of(house, asking, 'ask')}"]
    places = [
        *flows,
        "/",
        "/tasks",
        f"/tasks/{died}",
        f"/tasks/{said}",
        f"/new/media?from={died}",
        "/dead",
        "/media",
        "/audit",
    ]
    for path in [*places, f"/tasks?q={'onerror'}", f"/tasks?tag={'%3Cscript%3Ewindow.hurt=1%3C/script%3E'}"]:
        admin.goes_to(path)
        admin.is_done_loading()
        assert admin.page.evaluate("window.hurt") is None, path
        assert admin.page.locator("img[src=x], main script").count() == 0, path
    house.client.http.post(f"/api/v1/workflows/{asking}/cancel").raise_for_status()
    admin.goes_to(f"/tasks/{said}")
    admin.sees(re.compile(re.escape("</script><script>window.hurt=1")))


def test_a_comparison_explains_itself_until_two_tasks_are_named(house: Studio, admin: Visitor) -> None:
    one, two = (house.client.submit(payload={"result": each})["task_id"] for each in ("first", "second"))
    for task_id in (one, two):
        house.client.finished(task_id)
    for address in ("/compare", f"/compare?a={one}", "/compare?a=.&b=batch"):
        admin.goes_to(address)
        admin.sees("the address does not name two")
    admin.goes_to(f"/compare?a={one}&b={two}")
    admin.sees(re.compile('"second"'))
    admin.sees_no("the address does not name two")


def test_a_viewer_is_offered_nothing_that_changes_and_rest_refuses_it(house: Studio, stranger: Visitor) -> None:
    running = house.client.submit(payload={"seconds": 600})["task_id"]
    house.client.wait_until(running, "running")
    dead = house.client.submit(payload={"outcome": "permanent"})["task_id"]
    house.client.finished(dead)
    stranger.signs_in_with(new_key(house, "viewer", "eve"))
    changing = re.compile(
        r"^(New task|Cancel|Revive|Run again|Kill|Pause everything|Limit|Drain|Make a key|Revoke|Submit one)"
    )
    for path in ("/", "/tasks", f"/tasks/{running}", f"/tasks/{dead}", "/dead", "/providers", "/workers"):
        stranger.goes_to(path)
        stranger.is_done_loading()
        offered = stranger.page.get_by_role("button", name=changing).or_(
            stranger.page.get_by_role("link", name=changing)
        )
        assert offered.all_text_contents() == [], path
    stranger.goes_to("/new/probe")
    expect(stranger.page.get_by_role("button", name="Submit")).to_be_disabled()
    calls = [
        ("POST", "/api/v1/tasks", {"actor": "probe"}),
        ("POST", f"/api/v1/tasks/{running}/cancel", None),
        ("POST", f"/api/v1/tasks/{dead}/retry", None),
        ("POST", f"/api/v1/tasks/{running}/kill-worker", None),
        ("PATCH", "/api/v1/providers/probe", {"paused": True}),
        ("POST", "/api/v1/keys", {"role": "admin", "user_id": "eve"}),
    ]
    assert [stranger.calls(*call) for call in calls] == [403] * len(calls)
    house.client.cancel(running)


def test_axe_finds_nothing_in_five_views(house: Studio, admin: Visitor) -> None:
    task_id = house.client.submit(payload={"outcome": "permanent"})["task_id"]
    house.client.finished(task_id)
    for path in ("/", "/tasks", f"/tasks/{task_id}", "/new/media", "/dead"):
        admin.goes_to(path)
        admin.is_done_loading()
        admin.finds_nothing_wrong()


def test_an_api_that_restarts_under_the_page_is_a_moment_s_banner(house: Studio, admin: Visitor) -> None:
    task_id = house.client.submit(payload={"seconds": 600, "steps": 1200})["task_id"]
    admin.goes_to(f"/tasks/{task_id}")
    admin.sees_the_task("running")
    admin.sees_it_live()
    house.windlass.kill_api()
    admin.sees("The API has not answered")
    admin.sees_the_task("running")
    house.windlass.start_api_again()
    admin.sees_no("The API has not answered")
    admin.sees_it_live()
    house.client.cancel(task_id)
    admin.sees_the_task("cancelled")


def test_a_worker_killed_from_the_page_costs_an_attempt_and_not_the_task(house: Studio, admin: Visitor) -> None:
    task_id = house.client.submit(payload={"seconds": 600, "steps": 1200})["task_id"]
    admin.goes_to(f"/tasks/{task_id}")
    admin.sees_the_task("running")
    with ThreadPoolExecutor(1) as apart:  # the browser's thread has a loop already
        apart.submit(let_the_next_attempt_be_short, house.windlass, task_id).result()
    admin.presses("Kill its worker")
    admin.confirms("Kill it")
    attempts = admin.page.locator(".attempts li")
    expect(attempts.first).to_contain_text("its worker was lost", timeout=PATIENCE_MS)
    expect(attempts).to_have_count(2, timeout=PATIENCE_MS)
    admin.sees_the_task("completed")
    task = house.client.get(task_id)
    assert (task["attempt"], [each["type"] for each in task["error_history"]]) == (2, ["WorkerLost"])
    assert house.client.story(task_id).count("complete") == 1


def test_a_question_stays_until_it_is_answered_and_says_what_happened_meanwhile(house: Studio, admin: Visitor) -> None:
    for path, button, action in (
        ("/", "Kill its worker", "Kill it"),
        ("/tasks/{}", "Kill its worker", "Kill it"),
        ("/tasks/{}", "Cancel", "Cancel the task"),
    ):
        task_id = house.client.submit(payload={"seconds": 600})["task_id"]
        house.client.wait_until(task_id, "running")
        admin.goes_to(path.format(task_id))
        row = admin.page.locator(".running").filter(has=admin.page.locator(f"[id='row-{task_id}']"))
        asking = (row if path == "/" else admin.page).get_by_role("button", name=button, exact=True)
        asking.click()
        dialog = admin.page.locator("dialog[open]")
        expect(dialog.get_by_role("button", name=action)).to_be_enabled()
        house.client.cancel(task_id)
        expect(dialog.get_by_role("status")).to_have_text("Meanwhile it was cancelled.", timeout=PATIENCE_MS)
        expect(asking).to_have_count(0, timeout=PATIENCE_MS)  # and with it what the question was asked from
        expect(dialog.get_by_role("button", name=action)).to_be_disabled()
        admin.finds_nothing_wrong()
        admin.confirms("Back")


def test_a_double_click_on_run_starts_once_and_a_force_stop_says_what_it_kills_and_proves_it(
    house: Studio, admin: Visitor
) -> None:
    project_id = a_project(house, *({"title": title, "payload": {"seconds": 600}} for title in ("one", "two")))
    asked: list[str] = []
    admin.page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/run") else None)
    admin.goes_to("/projects")
    admin.follows("site")
    queue = admin.page.get_by_role("region", name="Queue")
    queue.get_by_role("button", name="Run", exact=True).dblclick()
    expect(queue).to_contain_text("A run is open already.", timeout=PATIENCE_MS)
    for name in ("Run", "Loop"):
        expect(queue.get_by_role("button", name=name, exact=True)).to_be_disabled()
    (run,) = read(house, project_id, "runs")["items"]
    assert len(asked) == 1
    task = house.client.wait_until(run["task_id"], "running")
    expect(admin.page.get_by_role("list", name="Items").get_by_role("listitem").first).to_contain_text("running")

    admin.presses("Force stop …")
    dialog = admin.page.locator("dialog[open]")
    for named in (run["run_id"], run["task_id"], task["worker_id"], "host"):
        expect(dialog).to_contain_text(named, timeout=PATIENCE_MS)
    admin.confirms("Kill it")
    receipt = admin.page.get_by_role("status", name="Receipt")
    expect(receipt).to_contain_text("Stopped by force, and proven", timeout=PATIENCE_MS)
    (killed,) = read(house, project_id, "runs")["items"]
    (proof,) = killed["receipt"]["tasks"]
    expect(receipt).to_contain_text(proof["proof"])
    expect(receipt).to_contain_text(run["task_id"])
    assert (killed["state"], read(house, project_id, "queue/status")["state"]) == ("cancelled", "idle")
    expect(queue).to_contain_text("was stopped by force after")
    admin.finds_nothing_wrong()
    admin.goes_to("/projects")
    admin.is_done_loading()
    admin.finds_nothing_wrong()


def test_a_loop_that_is_stopped_ends_with_its_run_and_the_page_sees_it_live(house: Studio, admin: Visitor) -> None:
    project_id = a_project(house, *({"payload": {"seconds": 1}} for _ in range(30)))
    admin.goes_to(f"/projects/{project_id}")
    admin.presses("Loop")
    queue = admin.page.get_by_role("region", name="Queue")
    expect(queue).to_contain_text("in a loop", timeout=PATIENCE_MS)
    admin.presses("Stop")
    expect(queue).to_contain_text("was stopped after", timeout=PATIENCE_MS)
    ended = read(house, project_id, "queue/status")
    assert (ended["state"], ended["stop_reason"]) == ("idle", "stopped")
    assert ended["counts"]["waiting"] > 0
    expect(queue.get_by_role("button", name="Loop")).to_be_enabled()


def test_an_order_by_hand_and_by_keyboard_is_kept_and_a_viewer_is_offered_none(
    house: Studio, admin: Visitor, chromium: Browser
) -> None:
    project_id = a_project(house, *({"title": title} for title in ("one", "two", "three")))
    rows = admin.page.get_by_role("list", name="Items").get_by_role("listitem")
    admin.goes_to(f"/projects/{project_id}")
    expect(rows).to_have_count(3, timeout=PATIENCE_MS)
    rows.nth(2).drag_to(rows.nth(0), target_position={"x": 120, "y": 4})
    expect(rows.nth(0)).to_contain_text("three", timeout=PATIENCE_MS)

    def titles() -> list[str]:
        return [each["title"] for each in read(house, project_id, "items")["items"]]

    wait_until("the first is stored", lambda: titles() == ["three", "one", "two"])
    admin.page.get_by_role("button", name="Move one down").focus()
    admin.page.keyboard.press("Enter")
    expect(rows.nth(2)).to_contain_text("one", timeout=PATIENCE_MS)
    wait_until("both are stored", lambda: titles() == ["three", "two", "one"])
    admin.reloads()
    for place, title in enumerate(("three", "two", "one")):
        expect(rows.nth(place)).to_contain_text(title, timeout=PATIENCE_MS)

    with Visitor.comes(chromium, house.windlass.url) as viewer:
        viewer.signs_in_with(new_key(house, "viewer", "eve"))
        for path in ("/projects", f"/projects/{project_id}"):
            viewer.goes_to(path)
            viewer.is_done_loading()
            assert viewer.page.locator(OFFERED).count() == 0
        calls = [
            ("POST", f"/api/v1/projects/{project_id}/run", {}),
            ("POST", f"/api/v1/projects/{project_id}/queue/force-stop", {}),
            ("POST", "/api/v1/projects", {"name": "hers"}),
        ]
        assert [viewer.calls(*call) for call in calls] == [403] * len(calls)


def test_a_graph_moves_by_itself_and_a_double_click_on_approve_decides_once(house: Studio, admin: Visitor) -> None:
    workflow_id = a_workflow(
        house,
        {"key": "begin", "payload": {"result": [1, 2, 3]}, "approval": {"message": "Begin?"}},
        {"key": "pages", "for_each": {"$from": "begin", "path": "/echo"}, "payload": {"result": {"$item": True}}},
        {"key": "publish", "depends_on": ["pages"], "approval": {"message": "Publish it?", "expires_in_seconds": 900}},
        {"key": "tidy", "depends_on": [{"key": "publish", "on": "ended"}]},
    )
    admin.goes_to(f"/workflows/{workflow_id}")
    graph = admin.page.get_by_role("region", name="Graph")
    box = partial(graph.get_by_role, "link", exact=True)
    expect(box(name="begin, waits for a word")).to_be_visible(timeout=PATIENCE_MS)
    expect(box(name="pages, blocked, for each")).to_be_visible()
    expect(graph.locator("path.ended")).to_have_count(1)
    house.client.http.post(f"/api/v1/tasks/{task_of(house, workflow_id, 'begin')}/approve").raise_for_status()
    expect(box(name="begin, completed")).to_be_visible(timeout=PATIENCE_MS)
    expect(box(name="pages, for each: 3 completed")).to_be_visible(timeout=PATIENCE_MS)
    expect(box(name="publish, waits for a word")).to_be_visible(timeout=PATIENCE_MS)
    admin.finds_nothing_wrong()

    box(name="begin, completed").focus()
    for _ in range(2):
        admin.page.keyboard.press("ArrowRight")
    expect(box(name="publish, waits for a word")).to_be_focused()
    admin.page.keyboard.press("Enter")
    publish = admin.task_id()
    expect(admin.page.get_by_role("region", name="Approval")).to_contain_text("Publish it?", timeout=PATIENCE_MS)

    asked: list[str] = []
    admin.page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/approve") else None)
    views = admin.page.get_by_role("navigation", name="Views")
    views.get_by_role("link", name=re.compile("^Approvals 1")).click(timeout=PATIENCE_MS)
    waiting = admin.page.get_by_role("list", name="Waiting for a word").get_by_role("listitem")
    expect(waiting).to_contain_text("Publish it?", timeout=PATIENCE_MS)
    expect(waiting).to_contain_text("expires in")
    admin.finds_nothing_wrong()
    waiting.get_by_label(re.compile("^A note")).fill("well done")
    waiting.get_by_role("button", name="Approve").dblclick()
    admin.sees("“Publish it?” is approved.")
    expect(waiting).to_have_count(0, timeout=PATIENCE_MS)
    expect(views.get_by_role("link", name="Approvals", exact=True)).to_be_visible(timeout=PATIENCE_MS)
    assert len(asked) == 1
    assert len(approvals_in_the_audit_log(house, publish)) == 1
    approval = house.client.finished(publish)["approval"]
    assert (approval["decision"], approval["comment"]) == ("approved", "well done")
    admin.goes_to(f"/workflows/{workflow_id}")
    expect(admin.page.locator(".badge", has_text="completed")).to_be_visible(timeout=PATIENCE_MS)


def test_an_escalated_workflow_says_why_and_goes_on_when_it_is_resumed(house: Studio, admin: Visitor) -> None:
    dies = {"outcome": "transient", "error_type": "QuotaExhausted", "fail_times": 1}
    workflow_id = a_workflow(
        house,
        {"key": "import", "payload": dies, "max_retries": 0},
        {"key": "report", "payload": {"result": "done"}, "depends_on": ["import"]},
        failure_threshold=1,
    )
    admin.goes_to("/workflows?status=escalated")
    admin.follows("report")
    banner = admin.page.get_by_role("alert")
    expect(banner).to_contain_text("Escalated after 1 failure", timeout=PATIENCE_MS)
    expect(banner).to_contain_text("QuotaExhausted", timeout=PATIENCE_MS)
    admin.presses("Resume …")
    ways = admin.page.locator("dialog[open]").get_by_role("radio")
    assert [way.is_checked() for way in ways.all()] == [True, False, False]
    admin.finds_nothing_wrong()
    admin.confirms("Resume it")
    expect(admin.page.locator(".badge", has_text="completed")).to_be_visible(timeout=PATIENCE_MS)
    expect(banner).to_have_count(0)
    assert flow(house, workflow_id)["counts"]["completed"] == 2


def test_a_viewer_is_offered_no_change_of_a_workflow_and_rest_refuses_it(house: Studio, stranger: Visitor) -> None:
    workflow_id = a_workflow(house, {"key": "asks", "approval": {"message": "May I?"}})
    asks = task_of(house, workflow_id, "asks")
    stranger.signs_in_with(new_key(house, "viewer", "eve"))
    changing = stranger.page.get_by_role("button", name=re.compile("^(Approve|Reject|Resume|Cancel)"))
    for path in ("/workflows", f"/workflows/{workflow_id}", "/approvals", f"/tasks/{asks}"):
        stranger.goes_to(path)
        stranger.is_done_loading()
        stranger.is_quiet()
        assert changing.count() == 0, path
    calls = [f"/workflows/{workflow_id}/cancel", f"/workflows/{workflow_id}/resume", f"/tasks/{asks}/approve"]
    assert [stranger.calls("POST", f"/api/v1{path}", {}) for path in calls] == [403] * len(calls)


def test_a_cancel_names_what_it_interrupts(house: Studio, admin: Visitor) -> None:
    workflow_id = a_workflow(
        house,
        {"key": "slow", "payload": {"seconds": 600}},
        {"key": "after", "depends_on": ["slow"]},
        {"key": "asks", "approval": {"message": "May I?"}},
    )
    house.client.wait_until(task_of(house, workflow_id, "slow"), "running")
    admin.goes_to(f"/workflows/{workflow_id}")
    graph = admin.page.get_by_role("region", name="Graph")
    expect(graph.get_by_role("link", name="slow, running")).to_be_visible()
    admin.presses("Cancel …")
    dialog = admin.page.locator("dialog[open]")
    expect(dialog).to_contain_text(re.compile(r"1 task is interrupted:\s*slow"))
    expect(dialog).to_contain_text("2 tasks that wait will not start")
    admin.confirms("Cancel the workflow")
    expect(graph.get_by_role("link", name="slow, cancelled")).to_be_visible()
    expect(admin.page.locator(".head .badge")).to_have_text("cancelled")


def test_an_actor_that_nothing_names_any_more_is_forgotten_on_its_page(
    house: Studio, admin: Visitor, chromium: Browser
) -> None:
    database_url = house.windlass.environment["WINDLASS_DATABASE_URL"]
    register(database_url, own_actor("translate"))
    wait_until("the api knows it", lambda: house.client.http.get("/api/v1/actors/translate").status_code == 200)
    admin.goes_to("/actors/translate")
    admin.presses("Forget …")
    admin.page.locator("dialog[open]").get_by_role("button", name="Forget", exact=True).click()
    admin.sees("the latest registration names it")

    register(database_url, own_actor("dub"))
    with Visitor.comes(chromium, house.windlass.url) as viewer:
        viewer.signs_in_with(new_key(house, "viewer", "vera"))
        viewer.goes_to("/actors/translate")
        viewer.is_done_loading()
        assert not viewer.is_offered("Forget …")
    admin.reloads()
    admin.presses("Forget …")
    admin.confirms("Forget")
    admin.page.wait_for_url("**/actors")
    expect(admin.page.get_by_role("link", name="dub", exact=True)).to_be_visible()
    expect(admin.page.get_by_role("link", name="translate", exact=True)).to_have_count(0)
    assert house.client.http.get("/api/v1/actors/translate").status_code == 404
