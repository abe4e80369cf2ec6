/** Schedules, webhooks, memory and costs: what they say in words, what is sent, and what is added up. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { DailyFigures, Schedule, ScheduleRun, TaskEvent, Webhook } from "../src/client.ts";
import { byDay, byGroup, hrefOfTasks, inAll, wasted } from "../src/costs/figures.ts";
import { hrefOfMemory, recalledIn, restOf, wayOf } from "../src/memory/words.ts";
import { bodyOf, draftOf, faultIn, timesIn } from "../src/schedules/draft.ts";
import { hrefWith, outcomesIn } from "../src/schedules/filters.ts";
import { hrefOf, pauseOf, reasonOf, targetOf, wordOf } from "../src/schedules/words.ts";
import { eventsOf, hrefOfSubject, standOf } from "../src/webhooks/words.ts";
import { inZone } from "../src/words/moments.ts";

const schedule = {
  name: "nightly",
  cron: "30 2 * * *",
  every_seconds: null,
  timezone: "Europe/Berlin",
  target: { task: { actor: "summarize", provider: "openrouter", payload: { content: "…" } } },
  overlap: "skip",
  catch_up: "latest",
  catch_up_window_seconds: 3600,
  jitter_seconds: 0,
  pause_after_failures: null,
  state: "active",
  failures: 0,
} as unknown as Schedule;
const run = (fields: Partial<ScheduleRun>): ScheduleRun => ({ outcome: "started", ...fields }) as ScheduleRun;

test("a due time is one word: how what it started has ended, or what became of it instead", () => {
  assert.equal(wordOf(run({})), "running");
  assert.equal(wordOf(run({ ended_at: "2026-06-01T00:00:00Z", ended_as: "dead" })), "dead");
  assert.equal(wordOf(run({ ended_at: "2026-06-01T00:00:00Z", ended_as: "finished" })), "done");
  assert.equal(wordOf(run({ outcome: "missed" })), "missed");
  assert.equal(reasonOf({ reason: "previous-live" }), "the one before still lived");
  assert.equal(reasonOf({ reason: "what the database said" }), "what the database said");
  assert.equal(hrefOf(run({ workflow_id: "w" })), "/workflows/w");
});

test("a schedule says what it starts, and why it stands still", () => {
  assert.equal(targetOf(schedule.target), "summarize, openrouter");
  assert.equal(targetOf({ project: { project_id: "p", mode: "loop" } }), "a project, in a loop");
  assert.equal(pauseOf(schedule), "");
  const paused = { ...schedule, state: "paused", pause_reason: "failures", failures: 3 } as Schedule;
  assert.match(pauseOf(paused), /^3 failures in a row/);
  assert.match(pauseOf({ ...paused, pause_reason: "owner-has-no-key" }), /no key any more/);
});

test("a draft becomes what is sent; a target that nobody has touched is not said again", () => {
  const draft = draftOf(schedule, "UTC");
  assert.deepEqual(timesIn(draft), { cron: "30 2 * * *", timezone: "Europe/Berlin" });
  assert.equal("target" in (JSON.parse(bodyOf(draft, schedule)) as object), false);
  const changed = { ...draft, task: '{"actor": "probe", "payload": {"n": 9007199254740993}}', by: "every" as const };
  const body = bodyOf({ ...changed, everySeconds: 60 }, schedule);
  assert.match(body, /9007199254740993/, "big numbers survive");
  assert.equal((JSON.parse(body) as { every_seconds: number }).every_seconds, 60);
  assert.equal(faultIn({ ...draft, task: "[1]" }), "The task is no JSON object.");
  assert.equal(faultIn({ ...draft, kind: "project" }), "No project is chosen yet.");
  assert.equal(faultIn({ ...draft, cron: " " }), "It does not say when it is due yet.");
});

test("times are shown by the clock of their zone, and filters are in the address", () => {
  assert.match(inZone("2026-07-01T00:30:00Z", "Europe/Berlin"), /1 Jul.*02:30/);
  assert.match(inZone("2026-07-01T00:30:00Z", "No/Where"), /00:30.*UTC/);
  assert.equal(
    hrefWith("/schedules/a", "outcome", ["missed", "refused"]),
    "/schedules/a?outcome=missed&outcome=refused",
  );
  assert.deepEqual(outcomesIn(new URLSearchParams("outcome=refused&outcome=nonsense")), ["refused"]);
});

test("an endpoint says how it is and what becomes of what it is to be told", () => {
  const webhook = { state: "enabled", reason: null, failing_since: null } as Webhook;
  assert.equal(standOf(webhook), "");
  assert.match(
    standOf({ ...webhook, state: "gone", reason: "it said 410: gone" }),
    /^It said 410: gone\. .*only a person/,
  );
  assert.match(standOf({ ...webhook, state: "disabled" }), /^Somebody disabled it/);
  assert.match(standOf({ ...webhook, state: "disabled", failing_since: "2026-06-01T00:00:00Z" }), /once a day/);
  assert.equal(eventsOf(["task.*", "workflow.failed"]), "all of task, workflow.failed");
  assert.equal(hrefOfSubject({ type: "approval.requested", subject: "t" }), "/tasks/t");
  assert.equal(hrefOfSubject({ type: "webhook.test", subject: "w" }), undefined);
});

test("costs are added up by day and by group, and a cost that nobody said is none", () => {
  const day = (fields: Partial<DailyFigures>): DailyFigures =>
    ({ created: 2, completed: 1, failed: 1, cost_usd: null, failed_cost_usd: null, ...fields }) as DailyFigures;
  const days = [
    day({ day: "2026-06-02", provider: "a", cost_usd: 1, failed_cost_usd: 0.25, prompt_tokens: 5 }),
    day({ day: "2026-06-01", provider: "a", cost_usd: 1 }),
    day({ day: "2026-06-01", provider: "b" }),
  ];
  assert.deepEqual(
    byGroup(days, "provider").map(({ name, cost, failedCost, created }) => [name, cost, failedCost, created]),
    [
      ["a", 2, 0.25, 4],
      ["b", null, null, 2],
    ],
  );
  assert.deepEqual(
    byDay(days, 3, Date.parse("2026-06-02T12:00:00Z")).map(({ name, cost }) => [name, cost]),
    [
      ["2026-05-31", null],
      ["2026-06-01", 1],
      ["2026-06-02", 1],
    ],
  );
  assert.deepEqual([wasted(inAll(days)), wasted(inAll([]))], ["13 %", ""]);
  assert.equal(
    hrefOfTasks("provider", "a", "2026-06-01", "dead"),
    "/tasks?status=dead&provider=a&created_after=2026-06-01T00%3A00%3A00Z",
  );
});

test("an answer of the memory says its model, how much it covers and the way", () => {
  const model = { model_id: "m", name: "hash-256" };
  assert.match(wayOf({ model, coverage: 0.5, exact: true }), /hash-256.*knows no meaning; 50 %.*all of them/);
  assert.match(
    wayOf({ model: { ...model, name: "small" }, coverage: 1, exact: false }),
    /small; all of what.*likeliest/,
  );
  assert.match(wayOf({ model: null, coverage: null, exact: true }), /words alone/);
  assert.equal(hrefOfMemory({ q: "a fox", subagent_type: "", project_id: "" }), "/memory?q=a+fox");
  const data = { memories: ["e"], model: "hash-256", degraded: false, stats_days: 30 };
  assert.deepEqual(recalledIn([{ type: "recall", attempt: 2, data } as unknown as TaskEvent]), [
    { attempt: 2, memories: ["e"], model: "hash-256", degraded: false, statsDays: 30 },
  ]);
});

test("what is remembered is not said twice", () => {
  assert.equal(restOf({ title: "Count them", text: "Count them\n\nThere are 7." }), "There are 7.");
  assert.equal(restOf({ title: "A windl", text: "A windlass hauls." }), "…ass hauls.");
  assert.equal(restOf({ title: "", text: "all" }), "all");
});
