import assert from "node:assert/strict";
import { test } from "node:test";
import { Refused, TaskDead, WaitTimeout, Windlass } from "../src/index.ts";
import { event, events, json, Scripted } from "./server.ts";

const progress = (status: string) => ({ attempt: 1, status, progress: {} });

test("a stream that is torn goes on after the last event, without a gap or a double", async () => {
  await using server = new Scripted(
    events(event(1, "progress", progress("queued")) + event(2, "output", { attempt: 1, text: "a" }), { torn: true }),
    json(503, { code: "database-away" }, { "Retry-After": "0" }),
    events(event(3, "output", { attempt: 1, text: "b" }) + event(4, "complete", { attempt: 1, result: 42 })),
  );
  const windlass = new Windlass({ url: await server.start(), key: "wl_a_b" });
  const seen = [];
  const states: string[] = [];
  for await (const each of windlass.streamTask("t", {
    onConnection: (state) => states.push(state),
  }))
    seen.push([each.seq, each.type]);
  assert.deepEqual(seen, [
    [1, "progress"],
    [2, "output"],
    [3, "output"],
    [4, "complete"],
  ]);
  assert.deepEqual(
    server.seen.map(({ headers }) => headers["last-event-id"]),
    [undefined, "2", "2"],
  );
  assert.equal(server.seen[0]?.headers.authorization, "Bearer wl_a_b");
  assert.deepEqual(states, ["connecting", "live", "resuming", "resuming", "live"]);
});

test("a client that has seen everything is done", async () => {
  await using server = new Scripted((_, response) => response.writeHead(204).end());
  const windlass = new Windlass({ url: await server.start() });
  assert.deepEqual(await Array.fromAsync(windlass.streamTask("t", { after: "9" })), []);
  assert.equal(server.seen[0]?.headers["last-event-id"], "9");
});

test("what will not pass is thrown", async () => {
  await using server = new Scripted(json(404, { code: "task-not-found", detail: "there is no task t" }));
  const windlass = new Windlass({ url: await server.start() });
  await assert.rejects(Array.fromAsync(windlass.streamTask("t")), (error: Refused) => error.code === "task-not-found");
});

test("a stream token that has run out is renewed, and the stream goes on where it was", async () => {
  await using server = new Scripted(
    events(event(1, "progress", progress("queued")), { torn: true }),
    json(401, { code: "unauthorized" }),
    events(event(2, "cancelled", { attempt: 0 })),
  );
  let issued = 0;
  const windlass = new Windlass({
    url: await server.start(),
    streamToken: async () => `token-${++issued}`,
  });
  const seen = await Array.fromAsync(windlass.streamTask("t"));
  assert.deepEqual(
    seen.map(({ seq }) => seq),
    [1, 2],
  );
  assert.deepEqual(
    server.seen.map(({ url }) => new URL(url, "http://x").searchParams.get("token")),
    ["token-1", "token-1", "token-2"],
  );
});

test("many tasks: the cursor stands also between events, and brings one back", async () => {
  const stop = new AbortController();
  await using server = new Scripted(
    events(`id: c0\n\n${event("c1", "progress", { task_id: "a", seq: 5, ...progress("running") })}id: c2\n\n`),
    events(event("c3", "resync", {})),
  );
  const windlass = new Windlass({ url: await server.start() });
  const places: string[] = [];
  const seen = [];
  const options = {
    signal: stop.signal,
    onPlace: (id: string) => places.push(id),
  };
  for await (const each of windlass.liveTasks({ task_id: ["a", "b"], only: "state" }, options)) {
    seen.push(each.type);
    if (each.type === "resync") stop.abort();
  }
  assert.deepEqual(seen, ["progress", "resync"]);
  assert.equal(server.seen[0]?.url, "/api/v1/stream?task_id=a&task_id=b&only=state");
  assert.equal(server.seen[1]?.headers["last-event-id"], "c2");
  assert.deepEqual(places, ["c2", "c3"]);
});

test("a submission whose answer is lost is repeated under the same key", async () => {
  await using server = new Scripted(
    (_, response) => void response.socket?.destroy(),
    json(503, {}, { "Retry-After": "0" }),
    json(201, { task_id: "t" }),
  );
  const windlass = new Windlass({ url: await server.start() });
  assert.equal((await windlass.createTask({ actor: "probe", payload: {} })).task_id, "t");
  const keys = server.seen.map(({ headers }) => headers["idempotency-key"]);
  assert.equal(keys.length, 3);
  assert.equal(new Set(keys).size, 1);
});

test("a refusal says what the API said, and is not repeated", async () => {
  await using server = new Scripted(json(422, { code: "invalid-payload", detail: "prompt: is missing" }));
  const windlass = new Windlass({ url: await server.start() });
  await assert.rejects(windlass.createTask({ actor: "media", payload: {} }), {
    message: "prompt: is missing",
  });
  assert.equal(server.seen.length, 1);
});

test("text comes as it was sent", async () => {
  await using server = new Scripted((_, response) => response.end('{"n": 1152921504606846977}'));
  assert.equal(await new Windlass({ url: await server.start() }).text("/x"), '{"n": 1152921504606846977}');
});

test("run waits over early answers and throws what a dead task died of", async () => {
  await using server = new Scripted(
    json(201, { task_id: "t", status: "queued" }),
    json(200, { task_id: "t", status: "running" }),
    json(503, {}, { "Retry-After": "0" }),
    json(200, { task_id: "t", status: "dead", attempt: 1, error: { type: "ValueError", message: "no text" } }),
  );
  const windlass = new Windlass({ url: await server.start() });
  await assert.rejects(
    windlass.run({ actor: "count", payload: {} }),
    (error: unknown) =>
      error instanceof TaskDead && error.message === "task t is dead after attempt 1: ValueError: no text",
  );
  assert.deepEqual(
    server.seen.map(({ method, url }) => `${method} ${url}`),
    ["POST /api/v1/tasks", ...Array(3).fill("GET /api/v1/tasks/t?wait=50")],
  );
});

test("a wait ends after its time, and at once when its signal aborts", async () => {
  await using server = new Scripted(json(200, { task_id: "t", status: "running" }));
  const windlass = new Windlass({ url: await server.start() });
  await assert.rejects(windlass.wait("t", { timeoutMs: 0 }), WaitTimeout);
  await assert.rejects(windlass.wait("t", { signal: AbortSignal.abort() }), { name: "AbortError" });
});
