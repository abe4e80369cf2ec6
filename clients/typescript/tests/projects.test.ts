import assert from "node:assert/strict";
import { test } from "node:test";
import { type QueueEvent, Refused, Windlass } from "../src/index.ts";
import { event, events, json, Scripted } from "./server.ts";

const lost = (_: unknown, response: { socket?: { destroy(): void } | null }): void => void response.socket?.destroy();
const counts = { waiting: 1, running: 0, done: 0, failed: 0, skipped: 0 };

test("a queue's stream begins with how it stands, and goes on after the last event when it is torn", async () => {
  const stop = new AbortController();
  await using server = new Scripted(
    events(
      event(4, "status", { state: "idle", counts }) + event(5, "run", { type: "open", run_id: "r", task_id: "t" }),
      {
        torn: true,
      },
    ),
    json(503, { code: "database-away" }, { "Retry-After": "0" }),
    events(event(6, "item", { type: "fulfil", item_id: "i", state: "done" }) + event(7, "status", { type: "finish" })),
  );
  const windlass = new Windlass({ url: await server.start(), key: "wl_a_b" });
  const seen: QueueEvent[] = [];
  for await (const each of windlass.projects.stream("p/1", { signal: stop.signal })) {
    seen.push(each);
    if (each.type === "finish") stop.abort();
  }
  assert.deepEqual(
    seen.map(({ seq, event, type }) => [seq, event, type]),
    [
      [4, "status", undefined],
      [5, "run", "open"],
      [6, "item", "fulfil"],
      [7, "status", "finish"],
    ],
  );
  assert.deepEqual(
    server.seen.map(({ headers }) => headers["last-event-id"]),
    [undefined, "5", "5"],
  );
  assert.equal(server.seen[0]?.url, "/api/v1/projects/p%2F1/queue/stream");
});

test("a project whose answer is lost is made once, and a stop is asked for until it is answered", async () => {
  await using server = new Scripted(lost, json(201, { project_id: "p" }), lost, json(200, { success: true }));
  const { projects } = new Windlass({ url: await server.start() });
  assert.equal((await projects.create({ name: "site", on_failure: "continue" })).project_id, "p");
  await projects.stop("p", { reason: "lunch" });
  const [first, second, third, fourth] = server.seen;
  assert.ok(first?.headers["idempotency-key"]);
  assert.equal(first.headers["idempotency-key"], second?.headers["idempotency-key"]);
  assert.deepEqual(JSON.parse(first.body), { name: "site", on_failure: "continue" });
  assert.deepEqual([third?.url, fourth?.url], Array(2).fill("/api/v1/projects/p/queue/stop"));
  assert.equal(fourth?.body, '{"reason":"lunch"}');
});

test("a run is asked for once: what has become of it is seen, not tried", async () => {
  await using server = new Scripted(lost);
  const { projects } = new Windlass({ url: await server.start() });
  await assert.rejects(projects.run("p", { mode: "loop" }), { name: "Unreachable" });
  await assert.rejects(projects.batch(["p"], { action: "run", mode: "loop" }), { name: "Unreachable" });
  assert.equal(server.seen.length, 2);
});

test("a run that is refused says which one is open", async () => {
  await using server = new Scripted(json(409, { code: "queue-already-running", run: { run_id: "r" } }));
  const { projects } = new Windlass({ url: await server.start() });
  await assert.rejects(projects.run("p"), (error: Refused) => error.code === "queue-already-running");
});

test("many at once, each with an answer of its own; a force-stop waits as long as it is told", async () => {
  const answers = [{ project_id: "a", status_code: 200 }];
  await using server = new Scripted(json(200, { items: answers }), json(202, { success: false, still_running: [{}] }));
  const { projects } = new Windlass({ url: await server.start() });
  assert.deepEqual(await projects.batch(["a", "b"], { action: "stop" }), answers);
  assert.deepEqual(JSON.parse(server.seen[0]!.body), { action: "stop", project_ids: ["a", "b"] });
  assert.equal((await projects.forceStop("a", { wait: 5 })).success, false);
  assert.equal(server.seen[1]?.url, "/api/v1/projects/a/queue/force-stop?wait=5");
});

test("a backlog is listed by its states, moved by one change, and an item goes without a word", async () => {
  await using server = new Scripted(
    json(200, { items: [], next_cursor: "1024" }),
    json(200, { item_id: "i" }),
    (_, response) => response.writeHead(204).end(),
  );
  const { projects } = new Windlass({ url: await server.start() });
  const page = await projects.items("p", { state: ["waiting", "failed"], limit: 2 });
  assert.equal(page.next_cursor, "1024");
  await projects.changeItem("p", "i", { before: "h" });
  assert.equal(await projects.deleteItem("p", "i"), undefined);
  assert.deepEqual(
    server.seen.map(({ method, url, body }) => [method, url, body]),
    [
      ["GET", "/api/v1/projects/p/items?state=waiting&state=failed&limit=2", ""],
      ["PATCH", "/api/v1/projects/p/items/i", '{"before":"h"}'],
      ["DELETE", "/api/v1/projects/p/items/i", ""],
    ],
  );
});
