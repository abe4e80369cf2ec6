import assert from "node:assert/strict";
import { test } from "node:test";
import type { ListedTask, LiveEvent, TaskEvent } from "../src/client.ts";
import { connecting, withoutStream, withReport } from "../src/live/connection.ts";
import { EMPTY_STORY, withLive, withPage } from "../src/live/merge.ts";
import { NO_OUTPUT, withOutput } from "../src/live/output.ts";
import { isNews, paused, resumed, revealed, rowsOf, withChanges, withFirstPage } from "../src/live/rows.ts";

const event = (seq: number, type = "output", text = `line ${seq}\n`): TaskEvent => ({
  seq,
  type,
  at: "2026-01-01T00:00:00Z",
  attempt: 1,
  data: type === "output" ? { text } : { status: "running" },
});
const live = (seq: number, text = `line ${seq}\n`): LiveEvent => ({
  type: "output",
  task_id: "t",
  cursor: `c${seq}`,
  seq,
  attempt: 1,
  text,
});
const WHOLE = { whole: true };
const seqs = (events: readonly TaskEvent[]): number[] => events.map(({ seq }) => seq);

test("history and what is said live make one story in every order of arrival", () => {
  const pages = [
    [event(1, "submit"), event(2, "claim"), event(3)],
    [event(4), event(5), event(6, "complete")],
  ];
  const said = [live(3), live(4), live(5)];
  for (let order = 0; order < 120; order++) {
    let story = EMPTY_STORY;
    const steps = [
      () => (story = withPage(story, pages[0]!, WHOLE)),
      () => (story = withPage(story, pages[1]!, WHOLE)),
      ...said.map((each) => () => (story = withLive(story, [each], "2026-01-01T00:00:01Z"))),
    ];
    for (let left = steps.length, dice = order; left > 0; dice = Math.floor(dice / left), left--)
      steps.splice(dice % left, 1)[0]!();
    assert.deepEqual(seqs(story.events), [1, 2, 3, 4, 5, 6]);
    assert.equal(story.readUpTo, 6);
    assert.equal(withOutput(NO_OUTPUT, story.events).attempts[0]?.chunks.join(""), "line 3\nline 4\nline 5\n");
  }
});

test("what was read without its output hides no gap: the whole is read on from where it was whole", () => {
  let story = withPage(EMPTY_STORY, [event(1, "submit"), event(2)], WHOLE);
  story = withLive(story, [live(5)], "2026-01-01T00:00:01Z");
  story = withPage(story, [event(4, "progress"), event(6, "progress")], { whole: false });
  assert.equal(story.readUpTo, 2);
  story = withPage(story, [event(3), event(4, "progress"), event(5), event(6, "progress")], WHOLE);
  assert.deepEqual([seqs(story.events), story.readUpTo], [[1, 2, 3, 4, 5, 6], 6]);
});

test("what is told twice at once is kept once", () => {
  const story = withLive(EMPTY_STORY, [live(3), live(3), live(4), live(3)], "");
  assert.deepEqual(seqs(story.events), [3, 4]);
});

test("what is no output is asked of the history, which holds more", () => {
  const said: LiveEvent = { type: "cancelled", task_id: "t", cursor: "c", seq: 9, attempt: 1 };
  assert.equal(withLive(EMPTY_STORY, [said], ""), EMPTY_STORY);
});

test("output grows at its end, attempts apart, and nothing is said twice", () => {
  let output = withOutput(NO_OUTPUT, [event(1), event(2)]);
  const before = output.attempts[0];
  output = withOutput(output, [event(1), event(2), { ...event(3), attempt: 2 }]);
  assert.equal(output.attempts[0], before, "an earlier attempt is left alone");
  assert.deepEqual(
    output.attempts.map(({ attempt, chunks }) => [attempt, chunks.join("")]),
    [
      [1, "line 1\nline 2\n"],
      [2, "line 3\n"],
    ],
  );
});

test("ten megabytes are pieces of 64 KB, and only the last one changes", () => {
  const line = `${"x".repeat(99)}\n`;
  let output = NO_OUTPUT;
  for (let seq = 1; seq <= 100; seq++) output = withOutput(output, [event(seq, "output", line.repeat(1000))]);
  const { chunks, length } = output.attempts[0]!;
  assert.equal(length, 10_000_000);
  assert.ok(chunks.every((chunk) => chunk.length <= 65_536));
  assert.ok(chunks.slice(0, -1).every((chunk) => chunk.endsWith("\n")));
  const next = withOutput(output, [event(101)]).attempts[0]!;
  assert.deepEqual(next.chunks.slice(0, -1), chunks.slice(0, -1));
  assert.equal(next.chunks.join("").length, length + "line 101\n".length);
});

const row = (task_id: string, updated_at = "2026-01-01T00:00:00Z"): ListedTask =>
  ({ task_id, status: "queued", attempt: 0, updated_at, progress: {}, error: null }) as unknown as ListedTask;
const change = (task_id: string, seq: number, status = "running"): LiveEvent =>
  ({
    type: "progress",
    task_id,
    seq,
    cursor: "",
    attempt: 1,
    status,
    progress: { updated_at: "2026-01-01T00:01:00Z" },
  }) as LiveEvent;
const ids = (rows: readonly ListedTask[]): string[] => rows.map(({ task_id }) => task_id);

test("a row changes in place, and an older word changes nothing", () => {
  let rows = rowsOf([row("b"), row("a")]);
  rows = withChanges(rows, [change("a", 5)]);
  assert.deepEqual([ids(rows.shown), rows.shown[1]?.status], [["b", "a"], "running"]);
  rows = withChanges(rows, [change("a", 4, "queued")]);
  assert.equal(rows.shown[1]?.status, "running");
  rows = withChanges(rows, [{ type: "complete", task_id: "a", seq: 6, cursor: "", attempt: 1, result: 1 }]);
  assert.equal(rows.shown[1]?.status, "completed");
});

test("new rows wait behind the pill until they are asked for, newest first", () => {
  let rows = rowsOf([row("b"), row("a")]);
  assert.ok(isNews(rows, [change("c", 1)]));
  assert.ok(!isNews(rows, [change("a", 1)]));
  rows = withFirstPage(rows, [row("d"), row("c"), row("b", "2026-01-02T00:00:00Z"), row("a")]);
  assert.deepEqual(
    [ids(rows.shown), ids(rows.waiting)],
    [
      ["b", "a"],
      ["d", "c"],
    ],
  );
  assert.equal(rows.shown[0]?.updated_at, "2026-01-02T00:00:00Z");
  assert.ok(!isNews(rows, [change("c", 1)]), "what waits is known");
  assert.deepEqual(ids(withFirstPage(rows, [row("d"), row("c")]).waiting), ["d", "c"], "nothing is doubled");
  assert.deepEqual(ids(revealed(rows).shown), ["d", "c", "b", "a"]);
});

test("a list has no hole: where more came than a page holds, it begins anew with the newest", () => {
  const rows = withFirstPage(rowsOf([row("b"), row("a")]), [row("f"), row("e")]);
  assert.deepEqual(ids(rows.shown), ["b", "a"], "until somebody asks for them");
  assert.deepEqual(ids(revealed(rows).shown), ["f", "e"]);
  assert.deepEqual(ids(revealed(withFirstPage(rows, [row("c"), row("b")])).shown), ["c", "b", "a"]);
});

test("paused means paused, and going on loses nothing", () => {
  let rows = paused(rowsOf([row("a")]));
  rows = withChanges(withChanges(rows, [change("a", 1)]), [change("a", 2, "retrying")]);
  assert.deepEqual([rows.shown[0]?.status, rows.held.length], ["queued", 2]);
  rows = resumed(rows);
  assert.deepEqual([rows.shown[0]?.status, rows.held.length], ["retrying", 0]);
});

test("the worse of two streams is shown, and the time counts from when it became so", () => {
  let now = connecting(0);
  now = withReport(now, { stream: "state", word: "live" }, 10);
  assert.deepEqual(now.shown, { word: "live", since: 10, trouble: "" });
  now = withReport(now, { stream: "open", word: "resuming", trouble: "nobody answers there" }, 20);
  now = withReport(now, { stream: "open", word: "resuming", trouble: "nobody answers there" }, 30);
  assert.deepEqual(now.shown, { word: "resuming", since: 20, trouble: "nobody answers there" });
  assert.equal(withoutStream(now, "open", 40).shown.word, "live");
});
