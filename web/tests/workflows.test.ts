/** Graphs of workflows: what is drawn, where it goes, how quickly, and what the URL says. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { State, Workflow } from "../src/client.ts";
import { interruptedBy } from "../src/workflows/control.ts";
import { askedOf, hrefOfWorkflows, workflowsIn } from "../src/workflows/filters.ts";
import { drawingOf, shapeOf, stateOf, tallyOf, wordsOf } from "../src/workflows/graph.ts";
import { beside, HIGH, layoutFor, layoutOf, WIDE } from "../src/workflows/layout.ts";

type Nodes = Workflow["nodes"];
type Edges = Workflow["edges"];

const task = (key: string, status: State = "blocked"): Nodes[number] => ({ key, task_id: `id-${key}`, status });
const edge = (from: string, to: string, on: Edges[number]["on"] = "completed"): Edges[number] => ({ from, to, on });

/** One, `number` that wait for it, and one that waits for all of them. */
function fan(number: number): { nodes: Nodes; edges: Edges } {
  const middle = Array.from({ length: number }, (_, at) => task(`page-${at}`, at % 3 ? "completed" : "running"));
  return {
    nodes: [task("split", "completed"), ...middle, task("join")],
    edges: middle.flatMap(({ key }) => [edge("split", key!), edge(key!, "join")]),
  };
}

const boxed = (layout: ReturnType<typeof layoutOf>): [number, number][] =>
  [...layout.places.values()].map(({ x, y }) => [x, y]);

test("a diamond has a box for each task, and lines that say on what", () => {
  const nodes = ["a", "b", "c", "d"].map((key) => task(key));
  const edges = [edge("a", "b"), edge("a", "c"), edge("b", "d"), edge("c", "d", "ended")];
  const drawing = drawingOf({ nodes, edges });
  assert.deepEqual(
    drawing.boxes.map(({ id, kind, href }) => [id, kind, href]),
    ["a", "b", "c", "d"].map((id) => [id, "task", `/tasks/id-${id}`]),
  );
  assert.deepEqual(drawing.lines, edges);
  const { places } = layoutOf(drawing, "right");
  const x = (id: string): number => places.get(id)!.x;
  assert.ok(x("a") < x("b") && x("b") === x("c") && x("c") < x("d"), "each level is right of the one before");
});

test("no two boxes lie over each other, by dagre and by levels", () => {
  for (const [drawing, name] of [
    [drawingOf(fan(12), { folded: false }), "dagre"],
    [drawingOf(fan(400), { folded: false }), "levels"],
  ] as const) {
    const all = boxed(layoutOf(drawing, "right"));
    const over = all.filter(([x, y], at) =>
      all.slice(at + 1).some(([u, v]) => Math.abs(x - u) < WIDE && Math.abs(y - v) < HIGH),
    );
    assert.deepEqual(over, [], name);
  }
});

test("what waits for the same and is waited for by the same is one box where there are many", () => {
  const workflow = fan(998);
  const drawing = drawingOf(workflow);
  assert.deepEqual(
    drawing.boxes.map(({ id, kind, members }) => [id, kind, members.length]),
    [
      ["split", "task", 1],
      ["page-0", "alike", 998],
      ["join", "task", 1],
    ],
  );
  assert.equal(drawing.lines.length, 2);
  assert.equal(drawingOf(fan(6)).boxes.length, 8, "a few are shown");
});

test("who lets start after any end is not folded with who does not", () => {
  const { nodes, edges } = fan(30);
  const mixed = edges.map((each, at) => (at % 4 === 1 ? { ...each, on: "ended" as const } : each));
  const kinds = drawingOf({ nodes, edges: mixed }).boxes.filter(({ kind }) => kind === "alike");
  assert.deepEqual(kinds.map(({ members }) => members.length).sort(), [15, 15]);
});

test("a state that changes moves nothing, and a task that joins does", () => {
  const before = fan(30);
  const after = { ...before, nodes: before.nodes.map((node) => ({ ...node, status: "completed" as const })) };
  assert.equal(shapeOf(drawingOf(before)), shapeOf(drawingOf(after)));
  const joined = { nodes: [...before.nodes, task("late")], edges: before.edges };
  assert.notEqual(shapeOf(drawingOf(before)), shapeOf(drawingOf(joined)));
});

test("a task of elsewhere that is waited for has a box, too", () => {
  const { boxes } = drawingOf({ nodes: [task("a")], edges: [edge("0199-other", "a")] });
  assert.deepEqual(boxes[1], {
    id: "0199-other",
    label: "0199-other",
    kind: "elsewhere",
    href: "/tasks/0199-other",
    members: [],
  });
});

test("a thousand boxes are laid out while one blinks, whatever they are to each other", () => {
  const ids = Array.from({ length: 1000 }, (_, at) => `t${at}`);
  const shapes = {
    chain: ids.slice(1).map((id, at) => edge(ids[at]!, id)),
    tangle: ids
      .slice(1)
      .flatMap((id, at) => [edge(ids[(at * 7) % (at + 1)]!, id), edge(ids[Math.max(0, at - 9)]!, id)]),
  };
  for (const [name, edges] of Object.entries(shapes)) {
    const drawing = drawingOf({ nodes: ids.map((id) => task(id)), edges });
    const begun = performance.now();
    const layout = layoutFor(drawing, 1000);
    assert.equal(layout.places.size, drawing.boxes.length);
    assert.ok(performance.now() - begun < 2000, `${name}: ${performance.now() - begun} ms`);
  }
});

test("in a narrow room a chain goes down, and a wide level still to the right", () => {
  const chain = drawingOf({ nodes: ["a", "b", "c"].map((key) => task(key)), edges: [edge("a", "b"), edge("b", "c")] });
  assert.ok(layoutFor(chain, 340).width <= 340);
  assert.ok(layoutFor(chain, 1000).width > 340);
  const wide = drawingOf(fan(4));
  assert.deepEqual(layoutFor(wide, 340), layoutOf(wide, "right"));
});

test("arrow keys go to the nearest box that way, and nowhere where there is none", () => {
  const places = new Map([
    ["a", { x: 0, y: 50 }],
    ["b", { x: 200, y: 0 }],
    ["c", { x: 200, y: 100 }],
    ["d", { x: 400, y: 60 }],
  ]);
  const way = (from: string, key: string): string | undefined => beside(places, from, key);
  assert.deepEqual(
    [way("b", "ArrowDown"), way("c", "ArrowUp"), way("c", "ArrowRight"), way("b", "ArrowLeft")],
    ["c", "b", "d", "a"],
  );
  assert.equal(way("d", "ArrowRight"), undefined);
  assert.equal(way("d", "Enter"), undefined);
});

test("those of a for_each are counted by state, and what needs a look is said first", () => {
  const child = (at: number, status: State) => ({ key: `pages[${at}]`, task_id: `c${at}`, status });
  const node = {
    ...task("pages", "running"),
    task_id: null,
    children: [child(0, "completed"), child(1, "running"), child(2, "dead")],
  };
  const tally = tallyOf([node]);
  assert.equal(wordsOf(tally), "1 completed, 1 running, 1 dead");
  assert.equal(stateOf(tally), "dead");
  assert.deepEqual(tallyOf([{ ...node, status: "blocked", children: [] }]), { blocked: 1 });
});

test("a cancel is told what it interrupts: what runs by its key, what waits by its number", () => {
  const { nodes } = fan(30);
  const counts = { total: 32, live: 11, completed: 21, dead: 0, cancelled: 0 };
  const told = interruptedBy({ nodes, counts });
  assert.deepEqual(told.running.slice(0, 2), ["page-0", "page-3"]);
  assert.deepEqual([told.running.length, told.more, told.waiting, told.completed], [10, 0, 1, 21]);
  assert.equal(interruptedBy({ nodes: fan(60).nodes, counts }).more, 8);
});

test("the list's filters are in its address and come back from it", () => {
  const href = "/workflows?status=running&status=escalated&tag=night&name=report&user_id=ann";
  const filter = workflowsIn(new URLSearchParams(href.split("?")[1]));
  assert.equal(hrefOfWorkflows(filter), href);
  assert.deepEqual(askedOf(workflowsIn(new URLSearchParams("status=odd"))), {});
  assert.deepEqual(askedOf(filter), {
    status: ["running", "escalated"],
    tag: ["night"],
    name: "report",
    user_id: "ann",
  });
});
