import assert from "node:assert/strict";
import { test } from "node:test";
import { type NewSchedule, Windlass } from "../src/index.ts";
import { json, Scripted } from "./server.ts";

const lost = (_: unknown, response: { socket?: { destroy(): void } | null }): void => void response.socket?.destroy();
const NIGHTLY: NewSchedule = {
  name: "every night",
  cron: "30 2 * * *",
  timezone: "Europe/Berlin",
  target: { task: { actor: "probe", payload: {} } },
  overlap: "queue-one",
};

test("a schedule is put until it is answered, by its name alone", async () => {
  await using server = new Scripted(lost, json(200, { name: "every night" }));
  const { schedules } = new Windlass({ url: await server.start() });
  assert.equal((await schedules.put(NIGHTLY)).name, "every night");
  const { name, ...rest } = NIGHTLY;
  assert.deepEqual(
    server.seen.map(({ method, url, body }) => [method, url, JSON.parse(body)]),
    [1, 2].map(() => ["PUT", `/api/v1/schedules/${encodeURIComponent(name)}`, rest]),
  );
});

test("what would start something twice is asked for once", async () => {
  await using server = new Scripted(lost);
  const { schedules } = new Windlass({ url: await server.start() });
  await assert.rejects(schedules.trigger("nightly"), { name: "Unreachable" });
  await assert.rejects(schedules.create(NIGHTLY), { name: "Unreachable" });
  const june = { from: "2026-06-01T00:00:00Z", to: "2026-06-02T00:00:00Z" };
  await assert.rejects(schedules.backfill("nightly", june), { name: "Unreachable" });
  assert.equal(server.seen.length, 3);
  assert.deepEqual(JSON.parse(server.seen[2]!.body), june);
});

test("pauses, times and due times are asked for as the API has them", async () => {
  await using server = new Scripted(
    lost,
    json(200, { state: "paused" }),
    json(200, { words: "At 02:30 every day", times: ["2026-06-01T00:30:00Z"] }),
    json(200, { items: [{ outcome: "missed" }], next_cursor: "2026-06-01T00:30:00Z" }),
    (_, response) => response.writeHead(204).end(),
  );
  const { schedules } = new Windlass({ url: await server.start() });
  assert.equal((await schedules.pause("nightly", { reason: "holiday" })).state, "paused");
  assert.equal((await schedules.preview({ every_seconds: 60, count: 1 })).times.length, 1);
  assert.equal((await schedules.runs("nightly", { outcome: ["missed", "refused"] })).items[0]?.outcome, "missed");
  await schedules.delete("nightly", { reason: "done" });
  assert.deepEqual(
    server.seen.slice(1).map(({ method, url, body }) => [method, url, body]),
    [
      ["POST", "/api/v1/schedules/nightly/pause", '{"reason":"holiday"}'],
      ["POST", "/api/v1/schedules/preview", '{"every_seconds":60,"count":1}'],
      ["GET", "/api/v1/schedules/nightly/runs?outcome=missed&outcome=refused", ""],
      ["DELETE", "/api/v1/schedules/nightly?reason=done", ""],
    ],
  );
});
