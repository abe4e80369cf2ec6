import assert from "node:assert/strict";
import { test } from "node:test";
import type { ListedTask, TaskEvent } from "../src/client.ts";
import { bodyOf, expected, sheetOf } from "../src/studio/sheet.ts";
import { arrivedIn, contentIdsIn } from "../src/words/contents.ts";

const file = (at: number): string => `01a1e965-3873-710a-ae2b-${String(at).padStart(12, "0")}`;
const task = (task_id: string, payload: object, contents: number[] = []): ListedTask =>
  ({
    task_id,
    payload,
    result: contents.length ? { content_ids: contents.map(file) } : null,
  }) as unknown as ListedTask;

test("a sheet knows what was varied from what", () => {
  const [third, second, first] = sheetOf([
    task("c", { action: "txt2img", prompt: "a fox, old", source_data: { varied_from: "a" } }),
    task("b", { action: "img2img", prompt: "in snow", source_image: file(2) }),
    task("a", { action: "txt2img", prompt: "a fox", params: { num_images: 2 } }, [1, 2]),
  ]);
  assert.deepEqual(second!.from, { taskId: "a", prompt: "a fox", picture: 2 });
  assert.deepEqual(third!.from, { taskId: "a", prompt: "a fox", picture: undefined });
  assert.deepEqual(first!.into, ["b", "c"]);
  assert.deepEqual([first!, second!].map(expected), [2, 4]);
});

test("a picture from elsewhere and a payload that is none break no sheet", () => {
  const [odd, far] = sheetOf([task("x", { params: 7, source_data: "mine" }), task("y", { source_image: file(9) })]);
  assert.deepEqual(
    [odd!.prompt, odd!.params, odd!.from, far!.from, far!.source],
    ["", {}, undefined, undefined, file(9)],
  );
});

test("an order says where it belongs, and its parameters stay as they were typed", () => {
  const order = {
    provider: "leonardo",
    action: "img2img",
    prompt: 'a "fox"',
    source: file(1),
    params: '{"seed": 1152921504606846977}',
    variedFrom: "a",
    runId: "studio-1",
    interactionId: "i",
  };
  const text = bodyOf(order);
  assert.match(text, /"seed": 1152921504606846977/);
  const { actor, provider, payload } = JSON.parse(text);
  assert.deepEqual([actor, provider, payload.source_image], ["media", "leonardo", file(1)]);
  assert.deepEqual(
    [payload.workflow_run_id, payload.interaction_id, payload.source_data],
    ["studio-1", "i", { varied_from: "a" }],
  );
  assert.ok(!("source_image" in JSON.parse(bodyOf({ ...order, action: "txt2img" })).payload));
});

test("files are shown as they are named, of this attempt alone, each once", () => {
  const said = (attempt: number, data: object): TaskEvent => ({
    seq: 1,
    type: "output",
    at: "",
    attempt,
    data: { data },
  });
  const events = [
    said(1, { content_id: file(1) }),
    said(2, { content_ids: [file(2), file(3)] }),
    said(2, { content_id: file(2) }),
  ];
  assert.deepEqual(arrivedIn(events, 2), [file(2), file(3)]);
  assert.deepEqual(contentIdsIn({ content_ids: ["../../keys", 7, null] }), []);
});
