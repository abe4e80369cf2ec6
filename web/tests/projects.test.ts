import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProjectQueue, QueueEvent } from "../src/client.ts";
import { kindOfLine, type Line, lineOf, nameOfLine } from "../src/live/line.ts";
import { dayOf, daysOf, endsOf, medianOf } from "../src/projects/figures.ts";
import { hrefOfList, itemsIn, listFilterIn, shownItems, toggled, withFilter } from "../src/projects/filters.ts";
import { moved, placeOfDrop } from "../src/projects/order.ts";
import { elapsedOf, endOf, isForced, toldOf, whyNotRun, withStatus } from "../src/projects/queue.ts";
import { goneAt, proofOf, signalsOf } from "../src/projects/receipt.ts";

const IDLE: ProjectQueue = {
  state: "idle",
  is_running: false,
  should_stop: false,
  mode: null,
  current_run_id: null,
  current_task_id: null,
  started_at: null,
  stopped_at: null,
  elapsed_ms: null,
  stop_reason: null,
  last_error: null,
  counts: { waiting: 2, running: 0, done: 0, failed: 0, skipped: 0 },
};

function status(change: Partial<ProjectQueue>): QueueEvent {
  const { elapsed_ms: _, still_running: __, open_jobs: ___, ...said } = { ...IDLE, ...change };
  return { seq: 7, event: "status", type: "start", ...said };
}

test("what is told of a queue is taken over what is known, and nothing of the message itself", () => {
  const started = { state: "running", is_running: true, mode: "loop", started_at: "2026-01-01T00:00:00Z" } as const;
  const running = withStatus(IDLE, status(started));
  assert.deepEqual(running, { ...IDLE, ...started });
  const run: QueueEvent = {
    seq: 8,
    event: "item",
    type: "add",
    item_id: "i",
    position: "1",
    title: "",
    state: "waiting",
  };
  assert.equal(withStatus(running, run), running, "what happens to an item says nothing of the queue");
  const remains = { still_running: [], open_jobs: [] };
  const stopping = withStatus({ ...running, ...remains }, status({ state: "stopping" }));
  assert.ok(isForced(stopping), "what still runs is kept until it is read again");
  assert.ok(!isForced(withStatus(stopping, status({ state: "idle", stop_reason: "forced" }))));
});

test("the time of a queue counts from its start, and stands when it has stopped", () => {
  assert.equal(elapsedOf(IDLE, 5000), undefined);
  const started_at = new Date(1000).toISOString();
  assert.equal(elapsedOf({ started_at, stopped_at: null }, 5000), 4000);
  assert.equal(elapsedOf({ started_at, stopped_at: new Date(3500).toISOString() }, 5000), 2500);
  assert.equal(elapsedOf({ started_at, stopped_at: null }, 0), 0, "a clock that is behind");
});

test("why it cannot be run is said in the order of what matters", () => {
  const why = (queue: Partial<ProjectQueue>, archived_at: string | null = null): string =>
    whyNotRun({ queue: { ...IDLE, ...queue }, archived_at });
  assert.equal(why({}), "");
  assert.match(why({ counts: { ...IDLE.counts, waiting: 0 } }), /^No item waits/);
  assert.match(why({ state: "running", mode: "loop" }), /loops already/);
  assert.match(why({ state: "running", mode: "single" }), /run is open/);
  assert.match(why({ state: "stopping" }), /ends with this run/);
  assert.match(why({ state: "stopping", still_running: [] }), /by force/);
  assert.match(why({ state: "running" }, "2026-01-01T00:00:00Z"), /archived/);
  assert.equal(endOf({ ...IDLE, stop_reason: "failed" }), "ended with a run that failed");
  assert.equal(endOf({ ...IDLE, state: "running", stop_reason: "failed" }), "");
});

test("of many that were told, those that refused are named, and those without proof are not counted as done", () => {
  const told = toldOf(
    [
      { project_id: "a", status_code: 202 },
      { project_id: "b", status_code: 409, problem: { code: "backlog-empty", detail: "no item waits" } },
      Object.assign({ project_id: "c", status_code: 202 }, { queue: { success: false } }),
    ],
    (projectId) => projectId.toUpperCase(),
  );
  assert.deepEqual(told, { done: 1, unproven: 1, refused: ["B: no item waits"] });
});

const letters = (text: string): { item_id: string }[] => [...text].map((item_id) => ({ item_id }));
const spelled = (items: readonly { item_id: string }[]): string => items.map((each) => each.item_id).join("");

test("an item goes before the one whose place it takes, and behind the last one", () => {
  const told = (itemId: string, place: number): unknown => {
    const move = moved(letters("abcd"), itemId, place);
    return move && [spelled(move.items), move.change, move.place];
  };
  assert.deepEqual(told("c", 0), ["cabd", { before: "a" }, 1]);
  assert.deepEqual(told("a", 1), ["bacd", { before: "c" }, 2]);
  assert.deepEqual(told("b", 3), ["acdb", { after: "d" }, 4]);
  for (const [itemId, place] of [
    ["a", 0],
    ["a", -1],
    ["d", 4],
    ["x", 1],
  ] as const)
    assert.equal(told(itemId, place), undefined);
});

test("what is dropped lands where the line was drawn, from above and from below", () => {
  const items = letters("abcd");
  const dropped = (dragged: string, over: string, isLower: boolean): string => {
    const move = moved(items, dragged, placeOfDrop(items, dragged, over, isLower));
    return spelled(move?.items ?? items);
  };
  assert.equal(dropped("a", "c", false), "bacd");
  assert.equal(dropped("a", "c", true), "bcad");
  assert.equal(dropped("d", "b", false), "adbc");
  assert.equal(dropped("d", "b", true), "abdc");
  assert.equal(dropped("a", "d", true), "bcda");
  assert.equal(dropped("b", "b", true), "abcd", "on itself");
});

test("runs add up: by day, by end, and to the one in the middle", () => {
  const at = (day: number, second = 0): string => new Date(2026, 0, day, 12, 0, second).toISOString();
  const run = (state: "completed" | "dead" | "cancelled" | "running", day: number, seconds: number, forced = false) => {
    const receipt = forced ? { asked_at: "", proven_at: "", tasks: [], open_jobs: [] } : null;
    return { state, started_at: at(day), ended_at: state === "running" ? null : at(day, seconds), receipt };
  };
  const runs = [
    run("running", 3, 0),
    run("cancelled", 3, 50, true),
    run("cancelled", 3, 50),
    run("completed", 1, 2),
    run("dead", 1, 10),
    run("completed", 1, 4),
  ];
  assert.deepEqual(endsOf(runs), [
    { end: "completed", runs: 2 },
    { end: "dead", runs: 1 },
    { end: "cancelled", runs: 1 },
    { end: "forced", runs: 1 },
  ]);
  assert.equal(medianOf(runs), 4000);
  assert.equal(medianOf([...runs, run("completed", 2, 6)]), 5000);
  assert.equal(medianOf([]), undefined);
  assert.deepEqual(
    daysOf(runs, new Date(2026, 0, 3, 23).getTime(), 4).map(({ runs, share }) => [runs, share]),
    [
      [0, 0],
      [3, 100],
      [0, 0],
      [3, 100],
    ],
  );
  assert.equal(dayOf(new Date(2026, 0, 3, 0, 30).getTime()), "2026-01-03", "the day of who looks");
});

test("a receipt says what was sent to which processes, and what proves it, whatever is in it", () => {
  const processes = {
    keeper: 70,
    signals: [
      { signal: "SIGTERM", at: "2026-01-01T00:00:00Z", pids: [71] },
      { signal: "SIGKILL", at: "2026-01-01T00:00:05Z", pids: [71, 72, "x"], pids_in_all: 900 },
    ],
    none_left_at: "2026-01-01T00:00:06Z",
  };
  assert.deepEqual(
    signalsOf({ processes }).map(({ signal, pids, inAll }) => [signal, pids, inAll]),
    [
      ["SIGTERM", [71], 1],
      ["SIGKILL", [71, 72], 900],
    ],
  );
  assert.equal(goneAt({ processes }), "2026-01-01T00:00:06Z");
  assert.deepEqual([signalsOf({ processes: null }), goneAt({ processes: null })], [[], undefined]);
  assert.match(proofOf({ proof: "keeper" }), /keeper/);
  assert.match(proofOf({ proof: "successor" }), /died with its guardian/);
  assert.match(proofOf({ proof: "lease" }), /^Nobody has seen it end/);
  assert.match(proofOf({ proof: null }), /no worker had it/);
});

test("filters are in the URL, and only what is one", () => {
  const filter = listFilterIn(new URLSearchParams("state=running&state=odd&archived=true&q=site&x=1"));
  assert.deepEqual(filter, { state: ["running"], archived: true, q: "site" });
  assert.equal(hrefOfList(filter), "/projects?state=running&archived=true&q=site");
  assert.equal(hrefOfList({ state: [], archived: false, q: " " }), "/projects");
  assert.deepEqual(shownItems(itemsIn(new URLSearchParams("items=done&items=odd"))), ["done"]);
  assert.deepEqual(shownItems(itemsIn(new URLSearchParams())), ["waiting", "running", "failed"]);
  assert.deepEqual([toggled(["a", "b"], "a"), toggled(["a"], "b")], [["b"], ["a", "b"]]);
  const query = new URLSearchParams("items=done&end=dead");
  assert.equal(withFilter("/p", query, "items", ["failed", "done"]), "/p?end=dead&items=failed&items=done");
  assert.equal(withFilter("/p", new URLSearchParams("end=dead"), "end", []), "/p");
});

test("the second connection is for tasks, and for a project where nobody looks at one", () => {
  const tab = (taskIds: string, projectId = "", visible = true) => {
    return { taskIds: [...taskIds], projectId: projectId || undefined, visible };
  };
  const line = (...tabs: ReturnType<typeof tab>[]): Line => lineOf(tabs);
  assert.equal(line(tab("")), undefined);
  assert.deepEqual(line(tab("ba"), tab("b")), { taskIds: ["a", "b"] });
  assert.deepEqual(line(tab("", "p")), { projectId: "p" });
  assert.deepEqual(line(tab("a"), tab("", "p")), { taskIds: ["a"] }, "its output is told by nobody else");
  assert.deepEqual(line(tab("a", "", false), tab("", "p")), { projectId: "p" }, "the task is hidden");
  assert.deepEqual(line(tab("a", "", false), tab("", "p", false)), { taskIds: ["a"] });
  assert.deepEqual(line(tab("", "p"), tab("", "q"), tab("", "r", false)), { projectId: "q" }, "the last one looked at");
  assert.notEqual(nameOfLine({ projectId: "p" }), nameOfLine({ taskIds: ["p"] }));
  assert.equal(kindOfLine({ taskIds: ["a"] }), kindOfLine({ taskIds: ["b"] }), "their places are the same stream's");
  assert.notEqual(kindOfLine({ projectId: "p" }), kindOfLine({ projectId: "q" }));
});
