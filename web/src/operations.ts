/** What the page does to tasks and workers, one function each. */

import { ask, rest, send } from "./api.ts";
import type { Task } from "./client.ts";

const path = (taskId: string) => ({ params: { path: { task_id: taskId } } });

export async function cancelTask(taskId: string): Promise<void> {
  await ask(rest.POST("/api/v1/tasks/{task_id}/cancel", path(taskId)));
}

export async function reviveTask(taskId: string): Promise<void> {
  await ask(rest.POST("/api/v1/tasks/{task_id}/retry", path(taskId)));
}

/** The payload goes as the text that was typed. A request that is repeated makes one task: `once` is its name. */
export function submitTask(body: string, once: string): Promise<Task> {
  return send<Task>("POST", "/tasks", body, { "Idempotency-Key": once });
}

export interface Bulk {
  bulk_id?: string;
  matched: number;
}

export function changeMany(action: "retry" | "cancel", filter: object, dryRun: boolean): Promise<Bulk> {
  const all = Object.keys(filter).length === 0 ? { all: true } : {};
  return send<Bulk>("POST", "/tasks/bulk", JSON.stringify({ action, filter, dry_run: dryRun, ...all }));
}

/** Where faults are allowed: the process that runs the task is killed as a crash would, with all that it runs. */
export async function killWorker(taskId: string): Promise<void> {
  await send("POST", `/tasks/${taskId}/kill-worker`, "{}");
}
