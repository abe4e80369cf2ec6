/** Why rows wait: asked one after the other for those that are drawn, and again after a while. */

import { SvelteMap } from "svelte/reactivity";
import { ask, rest } from "../api.ts";
import type { Why } from "../client.ts";

const BETWEEN_MS = 200;
const AGAIN_MS = 15_000;

const known = new SvelteMap<string, Why>();
/** When each was last asked about; those that nobody has asked about yet come first. */
const drawn = new Map<string, number>();
let timer: ReturnType<typeof setTimeout> | undefined;

export function whyOf(taskId: string): Why | undefined {
  return known.get(taskId);
}

/** Keeps it known while the row is drawn; returns how to stop. */
export function keepKnown(taskId: string): () => void {
  drawn.set(taskId, 0);
  soon(0);
  return () => {
    drawn.delete(taskId);
    known.delete(taskId);
  };
}

function soon(milliseconds: number): void {
  timer ??= setTimeout(() => {
    timer = undefined;
    void next();
  }, milliseconds);
}

async function next(): Promise<void> {
  const [taskId, asked] = [...drawn].reduce((a, b) => (b[1] < a[1] ? b : a), ["", Infinity] as [string, number]);
  if (!taskId) return;
  const left = asked + AGAIN_MS - Date.now();
  if (left > 0 || document.visibilityState !== "visible") return soon(Math.max(left, 1000));
  drawn.set(taskId, Date.now());
  const path = { task_id: taskId };
  const why = await ask(rest.GET("/api/v1/tasks/{task_id}/why", { params: { path } })).catch(() => undefined);
  if (why && drawn.has(taskId)) known.set(taskId, why);
  soon(BETWEEN_MS);
}
