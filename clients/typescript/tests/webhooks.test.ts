import assert from "node:assert/strict";
import { test } from "node:test";
import { Refused, Windlass } from "../src/index.ts";
import { json, Scripted } from "./server.ts";

const lost = (_: unknown, response: { socket?: { destroy(): void } | null }): void => void response.socket?.destroy();

test("a secret is said once, so that what says it is asked for once", async () => {
  await using server = new Scripted(json(201, { webhook_id: "w", secret: "whsec_a" }), lost);
  const { webhooks } = new Windlass({ url: await server.start() });
  const made = await webhooks.create({ url: "https://here.example", events: ["task.*"], filter: { tag: "night" } });
  assert.equal(made.secret, "whsec_a");
  await assert.rejects(webhooks.rotate("w"), { name: "Unreachable" });
  await assert.rejects(webhooks.redeliver("d"), { name: "Unreachable" });
  await assert.rejects(webhooks.test("w"), { name: "Unreachable" });
  assert.deepEqual(
    server.seen.map(({ method, url, body }) => [method, url, body]),
    [
      ["POST", "/api/v1/webhooks", '{"url":"https://here.example","events":["task.*"],"filter":{"tag":"night"}}'],
      ["POST", "/api/v1/webhooks/w/rotate", "{}"],
      ["POST", "/api/v1/deliveries/d/redeliver", "{}"],
      ["POST", "/api/v1/webhooks/w/test", "{}"],
    ],
  );
});

test("an endpoint is disabled until that is answered, and enabled with what was held, or without", async () => {
  await using server = new Scripted(lost, json(200, { state: "disabled" }), json(200, { state: "enabled" }));
  const { webhooks } = new Windlass({ url: await server.start() });
  assert.equal((await webhooks.disable("w", { reason: "moved" })).state, "disabled");
  assert.equal((await webhooks.enable("w", { replay: "none" })).state, "enabled");
  assert.deepEqual(
    server.seen.map(({ url, body }) => [url, body]),
    [
      ["/api/v1/webhooks/w/disable", '{"reason":"moved"}'],
      ["/api/v1/webhooks/w/disable", '{"reason":"moved"}'],
      ["/api/v1/webhooks/w/enable", '{"replay":"none"}'],
    ],
  );
});

test("deliveries are listed by state and read with every try", async () => {
  await using server = new Scripted(
    json(200, { items: [{ delivery_id: "d" }], next_cursor: "d" }),
    json(200, { delivery_id: "d", tries: [{ attempt: 1, status_code: 500 }] }),
    json(409, { code: "delivery-under-way" }),
  );
  const { webhooks } = new Windlass({ url: await server.start() });
  assert.equal((await webhooks.deliveries("w", { state: "held", limit: 1 })).next_cursor, "d");
  assert.equal((await webhooks.delivery("d")).tries[0]?.status_code, 500);
  await assert.rejects(webhooks.redeliver("d"), (error: Refused) => error.code === "delivery-under-way");
  assert.equal(server.seen[0]?.url, "/api/v1/webhooks/w/deliveries?state=held&limit=1");
});
