import assert from "node:assert/strict";
import { test } from "node:test";
import type { TaskEvent } from "../src/client.ts";
import { fieldsOf, payloadText, valuesOf } from "../src/forms/schema.ts";
import { detailsOf, hrefOfTarget } from "../src/words/details.ts";
import { ago, duration } from "../src/words/durations.ts";
import { bulkFilter, filtersIn, isTaskId, parseFilters, printFilters, queryOf } from "../src/words/filters.ts";
import { indented, membersOf } from "../src/words/raw_json.ts";
import { asCurl, bodyOf } from "../src/words/snippets.ts";
import { titleIn } from "../src/words/titles.ts";
import { attemptsOf, onScale, stretches } from "../src/words/timeline.ts";

test("what is typed, the URL and what is shown again are one and the same", () => {
  for (const text of [
    'status:dead status:retrying provider:midjourney tag:"night shift" error:RateLimited "a: b"',
    "fox in snow",
    "",
  ]) {
    const { filters, unknown } = parseFilters(text);
    assert.deepEqual(unknown, []);
    const again = filtersIn(new URLSearchParams(queryOf(filters)));
    assert.deepEqual(again, filters);
    assert.deepEqual(parseFilters(printFilters(again)).filters, filters);
  }
  assert.equal(queryOf(parseFilters("status:dead fox").filters), "status=dead&q=fox");
  assert.deepEqual(bulkFilter(parseFilters("status:dead error:X").filters), { status: ["dead"], error_type: "X" });
  assert.deepEqual(parseFilters("colour:red").unknown, ["colour"]);
  assert.ok(isTaskId("01a1e8e9-8334-751c-b44a-0316d2e7331b"));
});

test("the audit log says what was said, and a task what it is about", () => {
  assert.equal(
    detailsOf({ name: null, role: "user", limit: 6, owners: { ann: 1 }, tasks: [{ proof: "keeper" }], open_jobs: [] }),
    "role user · limit 6 · owners ann 1 · tasks 1",
  );
  assert.equal(hrefOfTarget("project.force-stopped", "p"), "/projects/p");
  assert.equal(hrefOfTarget("task.cancel", "t"), "/tasks/t");
  assert.equal(hrefOfTarget("provider.change", "nightly"), undefined);
  assert.equal(titleIn({ action: "txt2img", prompt: "a fox" }), "a fox");
  assert.equal(titleIn({ content: "x".repeat(200) }), `${"x".repeat(120)}…`);
  assert.equal(titleIn({ outcome: "transient" }), "");
});

test("numbers stay what they were", () => {
  const text = '{"a": 1152921504606846977, "b":{"c":[1.10, "}\\"", []],"d":{}} , "e":null}';
  assert.deepEqual(membersOf(text), { a: "1152921504606846977", b: '{"c":[1.10, "}\\"", []],"d":{}}', e: "null" });
  assert.equal(indented(membersOf(text)["b"]!), '{\n  "c": [\n    1.10,\n    "}\\"",\n    []\n  ],\n  "d": {}\n}');
  assert.deepEqual(JSON.parse(indented(text)), JSON.parse(text));
  assert.deepEqual(membersOf("{}"), {});
  for (const broken of ["", "{", '{"a', '{"a":', "]]", '{"a" 1}']) indented(broken);
});

test("a form out of a schema, and a payload out of the form", () => {
  const fields = fieldsOf({
    required: ["prompt", "action"],
    properties: {
      params: { type: "object" },
      prompt: { type: "string", maxLength: 20000 },
      seed: { anyOf: [{ type: "integer", minimum: 0, description: "Dice." }, { type: "null" }], default: null },
      action: { enum: ["txt2img", "img2img"] },
      loud: { type: "boolean", default: false },
      limits: { $ref: "#/$defs/Limits" },
    },
    $defs: { Limits: { type: "object" } },
  });
  assert.deepEqual(
    fields.map(({ name, kind }) => [name, kind]),
    [
      ["prompt", "text"],
      ["action", "choice"],
      ["seed", "number"],
      ["loud", "choice"],
      ["params", "json"],
      ["limits", "json"],
    ],
  );
  assert.equal(fields[2]?.description, "Dice.");
  const values = {
    prompt: 'a "fox"',
    action: "txt2img",
    seed: "1152921504606846977",
    loud: "true",
    params: '{"w": 8}',
  };
  const { text, faults } = payloadText(fields, values);
  assert.deepEqual(faults, {});
  assert.equal(
    text,
    '{"prompt": "a \\"fox\\"", "action": "txt2img", "seed": 1152921504606846977, "loud": true, "params": {"w": 8}}',
  );
  assert.deepEqual(valuesOf(fields, membersOf(text)), { ...values, limits: "" });
  assert.deepEqual(payloadText(fields, { action: "x", params: "{", seed: "two" }).faults, {
    prompt: "is needed",
    seed: "is no number",
    params: "is no JSON",
  });
});

const told = (seq: number, type: string, second: number, attempt: number, data: object = {}): TaskEvent => ({
  seq,
  type,
  at: new Date(second * 1000).toISOString(),
  attempt,
  data: { ...data },
});

test("a timeline to scale, with what ended each attempt", () => {
  const events = [
    told(1, "submit", 0, 0, { status: "queued" }),
    told(2, "dispatch", 1, 0, { status: "queued" }),
    told(3, "claim", 10, 1, { status: "running", worker_id: "w1" }),
    told(4, "stall", 40, 1, { status: "retrying", error: { type: "WorkerLost", message: "gone" } }),
    told(5, "claim", 50, 2, { status: "running", worker_id: "w2" }),
  ];
  const found = stretches(events, 100_000);
  assert.deepEqual(
    found.map(({ kind, from, to, open }) => [kind, from / 1000, to / 1000, open]),
    [
      ["waited", 0, 10, false],
      ["ran", 10, 40, false],
      ["backed-off", 40, 50, false],
      ["ran", 50, 100, true],
    ],
  );
  assert.deepEqual(
    onScale(found).map(({ left, width }) => [left, width]),
    [
      [0, 10],
      [10, 30],
      [40, 10],
      [50, 50],
    ],
  );
  const [first, second] = attemptsOf(events);
  assert.deepEqual(
    [first?.ending, first?.error, second?.ending, second?.worker],
    ["stall", "WorkerLost: gone", "", "w2"],
  );
});

test("a life long after another does not shrink the work to a dot", () => {
  const events = [
    told(1, "submit", 0, 0, { status: "queued" }),
    told(2, "claim", 5, 1, { status: "running" }),
    told(3, "bury", 10, 1, { status: "dead" }),
    told(4, "revive", 100_000, 1, { status: "queued" }),
    told(5, "claim", 100_005, 2, { status: "running" }),
    told(6, "complete", 100_010, 2, { status: "completed" }),
  ];
  const placed = onScale(stretches(events, 0));
  assert.equal(placed.length, 4);
  assert.ok(placed.every(({ width }) => width > 20));
  assert.deepEqual(
    placed.map(({ cut }) => cut),
    [false, false, true, false],
  );
});

test("times as people say them", () => {
  assert.deepEqual([12, 1500, 59_000, 61_000, 3_700_000].map(duration), [
    "12 ms",
    "1.5 s",
    "59 s",
    "1 min 01 s",
    "1 h 01 min",
  ]);
  assert.deepEqual([ago(0, 1000), ago(0, 30_000), ago(90_000, 0)], ["now", "30 s ago", "in 1 min"]);
});

test("the same again in a shell survives quotes and big numbers", () => {
  const request = { actor: "probe", provider: "probe", payload: '{"result": "it\'s", "n": 1152921504606846977}' };
  assert.ok(asCurl(request, "http://x").includes(`it'\\''s", "n": 1152921504606846977`));
  assert.equal(JSON.parse(bodyOf(request)).payload.result, "it's");
});
