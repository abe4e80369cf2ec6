import assert from "node:assert/strict";
import { test } from "node:test";
import { Refused, Windlass, type WorkflowEvent } from "../src/index.ts";
import { event, events, json, Scripted } from "./server.ts";

const lost = (_: unknown, response: { socket?: { destroy(): void } | null }): void => void response.socket?.destroy();

test("a workflow's stream goes on after the last event when it is torn, through an escalation, to its end", async () => {
  await using server = new Scripted(
    events(
      event("7.1", "workflow", { status: "running" }) +
        event("8.1", "progress", { task_id: "t", key: "draft", seq: 2, status: "running" }),
      { torn: true },
    ),
    json(503, { code: "database-away" }, { "Retry-After": "0" }),
    events(event("9.2", "workflow", { status: "escalated" }) + event("12.4", "complete", { status: "completed" })),
  );
  const windlass = new Windlass({ url: await server.start(), key: "wl_a_b" });
  const seen: WorkflowEvent[] = [];
  for await (const each of windlass.workflows.stream("w/1")) seen.push(each);
  assert.deepEqual(
    seen.map((each) => [each.cursor, each.event, each.status]),
    [
      ["7.1", "workflow", "running"],
      ["8.1", "progress", "running"],
      ["9.2", "workflow", "escalated"],
      ["12.4", "complete", "completed"],
    ],
  );
  assert.deepEqual(
    server.seen.map(({ headers }) => headers["last-event-id"]),
    [undefined, "8.1", "8.1"],
  );
  assert.equal(server.seen[0]?.url, "/api/v1/workflows/w%2F1/stream");
});

test("a workflow whose answer is lost is made once, and a cancel is asked for until it is answered", async () => {
  await using server = new Scripted(lost, json(201, { workflow_id: "w" }), lost, json(202, { cancel_requested: true }));
  const { workflows } = new Windlass({ url: await server.start() });
  const tasks = [
    { key: "draft", actor: "probe", payload: {} },
    { key: "each", actor: "probe", payload: { result: { $item: true } }, for_each: { $from: "draft" } },
    { key: "end", actor: "probe", payload: {}, depends_on: [{ key: "each", on: "ended" as const }] },
  ];
  assert.equal((await workflows.create({ name: "report", tasks, failure_threshold: 2 })).workflow_id, "w");
  await workflows.cancel("w", { reason: "lunch" });
  const [first, second, , fourth] = server.seen;
  assert.ok(first?.headers["idempotency-key"]);
  assert.equal(first.headers["idempotency-key"], second?.headers["idempotency-key"]);
  assert.deepEqual(JSON.parse(first.body), { name: "report", tasks, failure_threshold: 2 });
  assert.deepEqual([fourth?.url, fourth?.body], ["/api/v1/workflows/w/cancel", '{"reason":"lunch"}']);
});

test("a resume and a decision are asked for once: what has become of them is seen, not tried", async () => {
  await using server = new Scripted(lost);
  const { workflows, approvals } = new Windlass({ url: await server.start() });
  await assert.rejects(workflows.resume("w", { retry: "failed-and-downstream" }), { name: "Unreachable" });
  await assert.rejects(approvals.approve("t"), { name: "Unreachable" });
  assert.equal(server.seen.length, 2);
});

test("a decision carries a word, and the second one hears that it was decided", async () => {
  await using server = new Scripted(json(200, { task_id: "t" }), json(409, { code: "already-decided" }));
  const { approvals } = new Windlass({ url: await server.start() });
  await approvals.reject("t", { comment: "the second picture is wrong" });
  await assert.rejects(approvals.approve("t"), (error: Refused) => error.code === "already-decided");
  assert.deepEqual(
    server.seen.map(({ method, url, body }) => [method, url, body]),
    [
      ["POST", "/api/v1/tasks/t/reject", '{"comment":"the second picture is wrong"}'],
      ["POST", "/api/v1/tasks/t/approve", "{}"],
    ],
  );
});

test("workflows and approvals are listed by pages", async () => {
  await using server = new Scripted(json(200, { items: [], next_cursor: "w" }), json(200, { items: [{ key: "k" }] }));
  const { workflows, approvals } = new Windlass({ url: await server.start() });
  const page = await workflows.list({ status: ["running", "escalated"], tag: ["night"], limit: 2 });
  assert.equal(page.next_cursor, "w");
  assert.equal((await approvals.list({ cursor: "t" })).items[0]?.key, "k");
  assert.deepEqual(
    server.seen.map(({ url }) => url),
    ["/api/v1/workflows?status=running&status=escalated&tag=night&limit=2", "/api/v1/approvals?cursor=t"],
  );
});
