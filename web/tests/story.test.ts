import assert from "node:assert/strict";
import { test } from "node:test";
import { difference } from "../src/words/difference.ts";
import { looksLikeAnId } from "../src/words/filters.ts";
import { filled } from "../src/words/links.ts";
import { storyOf } from "../src/words/story.ts";
import { nameOf, titleOf } from "../src/words/titles.ts";

test("two texts line by line, with nothing lost of either", () => {
  const before = ["{", '  "prompt": "a fox",', '  "seed": 1', "}"].join("\n");
  const after = ["{", '  "prompt": "a hare",', '  "seed": 1,', '  "loud": true', "}"].join("\n");
  const lines = difference(before, after);
  const side = (signs: string): string =>
    lines
      .filter(({ sign }) => signs.includes(sign))
      .map(({ text }) => text)
      .join("\n");
  assert.deepEqual([side(" -"), side(" +")], [before, after]);
  assert.deepEqual(
    lines.filter(({ sign }) => sign === " ").map(({ text }) => text),
    ["{", "}"],
  );
  assert.ok(difference(before, before).every(({ sign }) => sign === " "));
});

test("what happened to a provider says who and why, also where it does not know the kind", () => {
  const changed = {
    type: "limit",
    reason: "by an operator",
    data: { by: "ann", why: "they asked us", limit: 2, before: 3 },
  };
  assert.deepEqual(storyOf(changed), {
    what: "Limit changed",
    who: "ann",
    why: "they asked us",
    facts: "limit 2, before 3",
  });
  const own = { type: "weather", reason: "hail", data: { until: "x", which: { a: 1 } } };
  assert.deepEqual(storyOf(own), { what: "weather", who: "", why: "hail", facts: "" });
});

test("an address elsewhere is made of a template, and nothing in a name can leave its place", () => {
  const task = { task_id: "t", provider: "a b&c", actor: "x", created_at: "1970-01-01T00:02:00Z", completed_at: null };
  assert.equal(
    filled("https://g/d?var-provider={provider}&from={from}&to={to}&{other}", task, 120_000),
    "https://g/d?var-provider=a%20b%26c&from=60000&to=180000&%7Bother%7D",
  );
});

test("an id is long, in one piece, with a digit; a filter is none", () => {
  for (const id of ["01a1e965-3873-710a", "job_12345", "req-9f8e7d6c"]) assert.ok(looksLikeAnId(id), id);
  for (const text of ["status:dead2024", "a fox in 2024", "lighthouse", "fox1"]) assert.ok(!looksLikeAnId(text), text);
});

test("a row has a title only where the list gives one", () => {
  assert.equal(titleOf({ title: "a fox" }), "a fox");
  assert.deepEqual(
    [titleOf({}), titleOf({ title: null }), nameOf({ task_type: null, actor: "media" })],
    ["", "", "media"],
  );
});
