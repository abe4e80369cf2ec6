/** A project's queue in the page: what is told changes it, what time it has taken, and why something cannot be done now. */

import type { Project, ProjectQueue, QueueEvent } from "../client.ts";

/** What is told of the queue, over what is known of it; what still runs is told by nobody and read again. */
export function withStatus(queue: ProjectQueue, said: QueueEvent): ProjectQueue {
  if (said.event !== "status") return queue;
  const { seq: _, event: __, type: ___, ...status } = said;
  const remains = status.state === "stopping" ? { still_running: queue.still_running, open_jobs: queue.open_jobs } : {};
  return { elapsed_ms: queue.elapsed_ms, ...status, ...remains };
}

/** Milliseconds since it was started, until it stopped; nothing if it never was. */
export function elapsedOf(queue: Pick<ProjectQueue, "started_at" | "stopped_at">, now: number): number | undefined {
  if (!queue.started_at) return undefined;
  return Math.max(0, (queue.stopped_at ? Date.parse(queue.stopped_at) : now) - Date.parse(queue.started_at));
}

/** Why it cannot be run now; empty when it can. */
export function whyNotRun({ queue, archived_at }: Pick<Project, "queue" | "archived_at">): string {
  if (archived_at) return "It is archived: it is read, and nothing else.";
  if (queue.state === "stopping") return isForced(queue) ? "It is being stopped by force." : "It ends with this run.";
  if (queue.state === "running") return queue.mode === "loop" ? "It loops already." : "A run is open already.";
  return queue.counts.waiting ? "" : "No item waits: add one, or requeue one.";
}

export function isForced(queue: ProjectQueue): boolean {
  return Array.isArray(queue.still_running);
}

/** How its last time ended, in words; empty while it goes on. */
export function endOf(queue: ProjectQueue): string {
  const words = {
    finished: "ended: nothing was left to run",
    stopped: "was stopped",
    forced: "was stopped by force",
    failed: "ended with a run that failed",
  };
  return queue.state === "idle" && queue.stop_reason ? words[queue.stop_reason] : "";
}

/** What was answered to many at once: how many did, and why the others did not, each by its name. */
export function toldOf(
  answers: readonly { project_id: string; status_code: number; problem?: unknown }[],
  nameOf: (projectId: string) => string,
): { done: number; unproven: number; refused: string[] } {
  const refused = answers
    .filter((each) => each.status_code >= 400)
    .map((each) => {
      const { detail, code } = (each.problem ?? {}) as { detail?: string; code?: string };
      return `${nameOf(each.project_id)}: ${detail ?? code ?? each.status_code}`;
    });
  // Run answers 202 as well: only a stop that has to be proven can be unproven.
  const unproven = answers.filter(
    (each) => "queue" in each && (each.queue as { success?: boolean } | null)?.success === false,
  ).length;
  return { done: answers.length - refused.length - unproven, unproven, refused };
}
