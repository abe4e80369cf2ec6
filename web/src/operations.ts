/** What the page does to tasks and workers, one function each. */

import { ask, rest, send } from "./api.ts";
import type { ListedTask, Task } from "./client.ts";
import { isTaskId } from "./words/filters.ts";

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

/** A picture of one's own to begin with: its id goes as `source_image`. */
export async function bringPicture(file: Blob): Promise<string> {
  const { content_id } = await send<{ content_id: string }>("POST", "/media", file, { "Content-Type": file.type });
  return content_id;
}

/** Where an id leads: to the task that it names, else to those of that job or request; nowhere if it is nobody's. */
export async function hrefOfId(id: string): Promise<string | undefined> {
  if (isTaskId(id)) {
    const named = await send<Task>("GET", `/tasks/${id.toLowerCase()}`).catch(() => undefined);
    if (named) return `/tasks/${named.task_id}`;
  }
  for (const filter of ["provider_job_id", "request_id"]) {
    const query = `${filter}=${encodeURIComponent(id)}`;
    const found = await send<{ items: ListedTask[] }>("GET", `/tasks?${query}&limit=2`).catch(() => undefined);
    if (found?.items.length) return found.items[1] ? `/tasks?${query}` : `/tasks/${found.items[0]!.task_id}`;
  }
  return isTaskId(id) ? `/tasks/${id.toLowerCase()}` : undefined;
}
