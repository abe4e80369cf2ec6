/** What a cancel would interrupt, so that whoever asks for it can be told before. */

import { hasEnded, type Workflow } from "../client.ts";
import { idOf } from "./graph.ts";

const NAMED = 12;

export interface Interrupted {
  /** The keys of what runs now, the first of them. */
  running: string[];
  more: number;
  waiting: number;
  completed: number;
}

export function interruptedBy({ nodes, counts }: Pick<Workflow, "nodes" | "counts">): Interrupted {
  const tasks = nodes.flatMap((node) =>
    node.children?.length ? node.children : [{ key: idOf(node), status: node.status }],
  );
  const running = tasks.filter(({ status }) => status === "running").map(({ key }) => key);
  return {
    running: running.slice(0, NAMED),
    more: Math.max(0, running.length - NAMED),
    waiting: tasks.filter((task) => !hasEnded(task)).length - running.length,
    completed: counts.completed,
  };
}
