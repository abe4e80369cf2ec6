/** Where boxes and lines go: by dagre where it is quick, by plain levels where there are too many for it. */

import { Graph, layout } from "@dagrejs/dagre";
import { type Drawing, type Line, put } from "./graph.ts";

export const WIDE = 164;
export const HIGH = 48;
const BETWEEN = 12;
const LEVELS = 44;
const MARGIN = 8;
/** Dagre needs seconds for some graphs of a few hundred, and a minute for a thousand. */
const MOST_BOXES = 100;
const MOST_LINES = 200;

export type Direction = "right" | "down";

export interface Place {
  x: number;
  y: number;
}

export interface Layout {
  width: number;
  height: number;
  /** The upper left corner of each box. */
  places: Map<string, Place>;
  paths: (Line & { d: string })[];
}

/** From left to right; from top to bottom if that alone fits the room. */
export function layoutFor(drawing: Drawing, room: number): Layout {
  const right = layoutOf(drawing, "right");
  if (right.width <= room || !isSmall(drawing)) return right;
  const down = layoutOf(drawing, "down");
  return down.width <= room ? down : right;
}

export function layoutOf(drawing: Drawing, direction: Direction): Layout {
  return isSmall(drawing) ? byDagre(drawing, direction) : byLevels(drawing);
}

function isSmall({ boxes, lines }: Drawing): boolean {
  return boxes.length <= MOST_BOXES && lines.length <= MOST_LINES;
}

function byDagre({ boxes, lines }: Drawing, direction: Direction): Layout {
  const graph = new Graph({ multigraph: true });
  const rankdir = direction === "right" ? "LR" : "TB";
  const ranksep = direction === "right" ? LEVELS : LEVELS;
  graph.setGraph({ rankdir, nodesep: BETWEEN, ranksep, marginx: MARGIN, marginy: MARGIN });
  for (const { id } of boxes) graph.setNode(id, { width: WIDE, height: HIGH });
  lines.forEach(({ from, to }, at) => void graph.setEdge(from, to, {}, String(at)));
  layout(graph);
  const places = new Map(
    boxes.map(({ id }) => {
      const { x = 0, y = 0 } = graph.node(id) as Partial<Place>;
      return [id, { x: x - WIDE / 2, y: y - HIGH / 2 }];
    }),
  );
  const paths = lines.map((line, at) => {
    const { points = [] } = graph.edge(line.from, line.to, String(at)) as { points?: Place[] };
    return { ...line, d: curve(places.get(line.from)!, places.get(line.to)!, points.slice(1, -1), direction) };
  });
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return { width, height, places, paths };
}

/** Each a level behind the last that it waits for, and in a level in the order of those. */
function byLevels({ boxes, lines }: Drawing): Layout {
  const parents = new Map<string, string[]>(boxes.map(({ id }) => [id, []]));
  for (const { from, to } of lines) parents.get(to)?.push(from);
  const levels: string[][] = [];
  const levelOf = levelsOf(parents);
  for (const { id } of boxes) (levels[levelOf.get(id)!] ??= []).push(id);
  const row = new Map<string, number>();
  for (const level of levels) {
    const middle = (id: string): number => {
      const above = parents.get(id)!;
      return above.reduce((sum, each) => sum + (row.get(each) ?? 0), 0) / (above.length || 1);
    };
    const wanted = new Map(level.map((id) => [id, middle(id)]));
    level.sort((a, b) => wanted.get(a)! - wanted.get(b)!);
    level.forEach((id, at) => row.set(id, at));
  }
  const places = new Map(
    boxes.map(({ id }) => [
      id,
      { x: MARGIN + levelOf.get(id)! * (WIDE + LEVELS), y: MARGIN + row.get(id)! * (HIGH + BETWEEN) },
    ]),
  );
  const deepest = Math.max(0, ...levels.map((level) => level.length));
  return {
    width: 2 * MARGIN + levels.length * (WIDE + LEVELS) - LEVELS,
    height: 2 * MARGIN + deepest * (HIGH + BETWEEN) - BETWEEN,
    places,
    paths: lines.map((line) => ({ ...line, d: curve(places.get(line.from)!, places.get(line.to)!, [], "right") })),
  };
}

/** Without going deeper for each: a chain of a thousand is no reason to run out of stack. */
function levelsOf(parents: ReadonlyMap<string, readonly string[]>): Map<string, number> {
  const waits = new Map([...parents].map(([id, all]) => [id, all.length]));
  const children = new Map<string, string[]>();
  for (const [id, all] of parents) for (const each of all) put(children, each, id);
  const level = new Map([...parents.keys()].map((id) => [id, 0]));
  const ready = [...parents.keys()].filter((id) => !waits.get(id));
  for (let id = ready.pop(); id !== undefined; id = ready.pop())
    for (const child of children.get(id) ?? []) {
      level.set(child, Math.max(level.get(child)!, level.get(id)! + 1));
      waits.set(child, waits.get(child)! - 1);
      if (!waits.get(child)) ready.push(child);
    }
  return level;
}

function curve(from: Place, to: Place, between: readonly Place[], direction: Direction): string {
  const right = direction === "right";
  const start = right ? { x: from.x + WIDE, y: from.y + HIGH / 2 } : { x: from.x + WIDE / 2, y: from.y + HIGH };
  const end = right ? { x: to.x - 2, y: to.y + HIGH / 2 } : { x: to.x + WIDE / 2, y: to.y - 2 };
  let d = `M${at(start)}`;
  let last = start;
  for (const next of [...between, end]) {
    const middle = right ? (last.x + next.x) / 2 : (last.y + next.y) / 2;
    const [one, two] = right
      ? [
          { ...last, x: middle },
          { ...next, x: middle },
        ]
      : [
          { ...last, y: middle },
          { ...next, y: middle },
        ];
    d += `C${at(one)} ${at(two)} ${at(next)}`;
    last = next;
  }
  return d;
}

function at({ x, y }: Place): string {
  return `${Math.round(x)} ${Math.round(y)}`;
}

const KEYS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] } as const;

/** The nearest box in the direction of an arrow key, if there is one. */
export function beside(places: ReadonlyMap<string, Place>, id: string, key: string): string | undefined {
  const from = places.get(id);
  const way = KEYS[key as keyof typeof KEYS];
  if (!from || !way) return undefined;
  let best: { id: string; far: number } | undefined;
  for (const [other, { x, y }] of places) {
    const [along, across] = way[0]
      ? [(x - from.x) * way[0], Math.abs(y - from.y)]
      : [(y - from.y) * way[1], Math.abs(x - from.x)];
    if (other === id || along <= 1) continue;
    const far = along + 3 * across;
    if (!best || far < best.far) best = { id: other, far };
  }
  return best?.id;
}
