/** A workflow as boxes and lines: what of it is drawn, and what is folded into one box because it is alike. */

import type { State, Workflow, WorkflowNode } from "../client.ts";

/** In the order in which a bar shows them. */
export const STATES: readonly State[] = [
  "completed",
  "running",
  "retrying",
  "queued",
  "blocked",
  "dead",
  "cancelled",
] as const;

export type Tally = Partial<Record<State, number>>;

export interface Box {
  /** The key in the workflow, or the id of a task that has none there. */
  id: string;
  label: string;
  /** What it stands for: one task, those of a `for_each`, several that are alike, or a task of elsewhere. */
  kind: "task" | "each" | "alike" | "elsewhere";
  /** Where a click leads: its task, or its rows in the table. */
  href: string;
  /** The rows of the table that it stands for. */
  members: string[];
}

export interface Line {
  from: string;
  to: string;
  on: "completed" | "ended";
}

export interface Drawing {
  boxes: Box[];
  lines: Line[];
}

export const idOf = (node: WorkflowNode): string => node.key ?? node.task_id ?? "";

/** Below so many boxes every task has its own. */
const FOLD_ABOVE = 24;
/** So many that wait for the same and are waited for by the same are one. */
const ALIKE = 4;

type Shape = Pick<Workflow, "nodes" | "edges">;

export function drawingOf({ nodes, edges }: Shape, { folded = true } = {}): Drawing {
  const groups = folded && nodes.length > FOLD_ABOVE ? alike({ nodes, edges }) : new Map<string, string[]>();
  const within = new Map([...groups].flatMap(([first, all]) => all.map((each) => [each, first] as const)));
  const known = new Set(nodes.map(idOf));
  const boxes = nodes.filter((node) => (within.get(idOf(node)) ?? idOf(node)) === idOf(node)).map((node) => box(node));
  for (const { from } of edges)
    if (!known.has(from)) {
      known.add(from);
      boxes.push({ id: from, label: from, kind: "elsewhere", href: `/tasks/${from}`, members: [] });
    }
  const lines = new Map<string, Line>();
  for (const { from, to, on } of edges) {
    const line = { from: within.get(from) ?? from, to: within.get(to) ?? to, on };
    lines.set(JSON.stringify([line.from, line.to, on]), line);
  }
  return { boxes, lines: [...lines.values()] };

  function box(node: WorkflowNode): Box {
    const id = idOf(node);
    const members = groups.get(id);
    if (members) return { id, label: id, kind: "alike", href: `#${rowId(id)}`, members };
    if (node.children) return { id, label: id, kind: "each", href: `#${rowId(id)}`, members: [id] };
    return { id, label: id, kind: "task", href: `/tasks/${node.task_id}`, members: [id] };
  }
}

/** Tasks that wait for the same ones in the same way, and are waited for by the same ones: by the first of them. */
function alike({ nodes, edges }: Shape): Map<string, string[]> {
  const around = new Map<string, string[]>();
  for (const { from, to, on } of edges) {
    put(around, to, JSON.stringify(["after", from, on]));
    put(around, from, JSON.stringify(["before", to, on]));
  }
  const groups = new Map<string, string[]>();
  for (const node of nodes) {
    if (node.children) continue;
    put(groups, (around.get(idOf(node)) ?? []).sort().join(), idOf(node));
  }
  return new Map(
    [...groups.values()].filter((all) => all.length >= ALIKE).map((all) => [all[0]!, all] as [string, string[]]),
  );
}

/** Adds to a list that may not be there yet. */
export function put<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

/** What the layout depends on, and nothing else: states change, places do not. */
export function shapeOf({ boxes, lines }: Drawing): string {
  return JSON.stringify([boxes.map(({ id, kind }) => [id, kind]), lines]);
}

/** How many tasks of each state there are below these rows; what stands for no task yet counts by itself. */
export function tallyOf(nodes: Iterable<WorkflowNode>): Tally {
  const tally: Tally = {};
  for (const node of nodes)
    for (const { status } of node.children?.length ? node.children : [node]) tally[status] = (tally[status] ?? 0) + 1;
  return tally;
}

export function totalOf(tally: Tally): number {
  return Object.values(tally).reduce((sum, number) => sum + number, 0);
}

/** The state that one looks for first among several. */
const TELLING: readonly State[] = ["dead", "running", "retrying", "queued", "blocked", "cancelled", "completed"];

export function stateOf(tally: Tally): State {
  return TELLING.find((state) => tally[state]) ?? "completed";
}

/** `12 completed, 2 running, 1 dead`. */
export function wordsOf(tally: Tally): string {
  return STATES.filter((state) => tally[state])
    .map((state) => `${tally[state]!.toLocaleString("en")} ${state}`)
    .join(", ");
}

export function rowId(id: string): string {
  return `node-${encodeURIComponent(id)}`;
}

/** Cut in the middle of nowhere, where it is too long for its box. */
export function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
