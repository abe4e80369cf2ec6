import assert from "node:assert/strict";
import { test } from "node:test";
import { Windlass } from "../src/index.ts";
import { json, Scripted } from "./server.ts";

const lost = (_: unknown, response: { socket?: { destroy(): void } | null }): void => void response.socket?.destroy();

test("a question is asked until it is answered, in a body and not in an address", async () => {
  await using server = new Scripted(lost, json(200, { items: [], degraded: true }));
  const { memory } = new Windlass({ url: await server.start() });
  const found = await memory.search({ q: "which lighthouses?", limit: 3, subagent_type: "coder" });
  assert.equal(found.degraded, true);
  assert.deepEqual(
    [server.seen[1]?.url, server.seen[1]?.body],
    ["/api/v1/memory/search", '{"q":"which lighthouses?","limit":3,"subagent_type":"coder"}'],
  );
});

test("events are listed and forgotten, models activated, jobs retried", async () => {
  await using server = new Scripted(
    json(200, { items: [{ event_id: "e" }] }),
    (_, response) => response.writeHead(204).end(),
    json(200, { state: "active" }),
    json(202, { state: "waiting" }),
  );
  const { memory } = new Windlass({ url: await server.start() });
  assert.equal((await memory.events({ actor: "agent", status: "dead" })).items[0]?.event_id, "e");
  await memory.forget("e");
  assert.equal((await memory.activateModel("m")).state, "active");
  assert.equal((await memory.retryJob("j")).state, "waiting");
  assert.deepEqual(
    server.seen.map(({ method, url }) => [method, url]),
    [
      ["GET", "/api/v1/agent-events?actor=agent&status=dead"],
      ["DELETE", "/api/v1/agent-events/e"],
      ["POST", "/api/v1/embedding-models/m/activate"],
      ["POST", "/api/v1/embedding-jobs/j/retry"],
    ],
  );
});

test("figures come as documents, and as a table for a spreadsheet", async () => {
  await using server = new Scripted(json(200, { items: [{ day: "2026-06-01" }] }), (_, response) =>
    response.writeHead(200, { "Content-Type": "text/csv" }).end("day,user_id\r\n"),
  );
  const windlass = new Windlass({ url: await server.start(), key: "wl_a_b" });
  const which = { days: 7, group_by: ["user_id", "provider"] as const };
  assert.equal((await windlass.stats(which))[0]?.day, "2026-06-01");
  assert.equal(await windlass.statsCsv(which), "day,user_id\r\n");
  assert.deepEqual(
    server.seen.map(({ url, headers }) => [url, headers.accept]),
    [
      ["/api/v1/stats?days=7&group_by=user_id%2Cprovider", "*/*"],
      ["/api/v1/stats?days=7&group_by=user_id%2Cprovider", "text/csv"],
    ],
  );
});
