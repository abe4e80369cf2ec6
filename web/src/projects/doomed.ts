/** What a force-stop would kill: the run's task and everything that came of it and lives, with who runs it, and where. */

import { ask, rest } from "../api.ts";
import { hasEnded, type ListedTask, type Task } from "../client.ts";
import { seesEverything } from "../session.svelte.ts";

const MOST = 200;

export interface Doomed {
  tasks: (Pick<Task, "task_id" | "status" | "task_type" | "actor" | "worker_id"> & { hostname: string | undefined })[];
  /** Whether there are more than were looked for. */
  more: boolean;
}

export async function doomedBy(taskId: string): Promise<Doomed> {
  const path = { task_id: taskId };
  const [root, workers] = await Promise.all([
    ask(rest.GET("/api/v1/tasks/{task_id}", { params: { path } })),
    seesEverything() ? ask(rest.GET("/api/v1/workers")).catch(() => undefined) : undefined,
  ]);
  const found: (Task | ListedTask)[] = [root];
  // What has ended may have children that live.
  for (let at = 0; at < found.length && found.length < MOST; at++) {
    const query = { parent_task_id: found[at]!.task_id, limit: MOST };
    found.push(...(await ask(rest.GET("/api/v1/tasks", { params: { query } }))).items);
  }
  const hosts = new Map(workers?.items.map((worker) => [worker.worker_id, worker.hostname]));
  const tasks = found
    .filter((task) => !hasEnded(task))
    .map(({ task_id, status, task_type, actor, worker_id }) => {
      return { task_id, status, task_type, actor, worker_id, hostname: hosts.get(worker_id ?? "") };
    });
  return { tasks, more: found.length >= MOST };
}
