/** What schedules and their due times say, in sentences. */

import type { Schedule, ScheduleRun } from "../client.ts";
import type { Word } from "../parts/Mark.svelte";
import { count, roughly } from "../words/durations.ts";

export const OVERLAPS: Readonly<Record<Schedule["overlap"], string>> = {
  skip: "the due time is skipped",
  "queue-one": "one waits for its end, more are skipped",
  allow: "it is started all the same, beside it",
  "cancel-previous": "that one is cancelled, and this one starts when it has ended",
};

export const CATCH_UPS: Readonly<Record<Schedule["catch_up"], string>> = {
  none: "nothing is made up for",
  latest: "the latest one is made up for",
  all: "all are made up for, a hundred at most",
};

const REASONS: Readonly<Record<string, string>> = {
  "previous-live": "the one before still lived",
  "previous-stopping": "waits until the one before has been stopped",
  "another-waits": "another one waits already",
  superseded: "a later one was due as well, and made up for it",
  "too-late": "nobody was there in time, and it was too late to make up for it",
  paused: "it was paused",
  changed: "it was changed before it started",
  deleted: "it was deleted",
  "queue-already-running": "the project was running already",
  "backlog-empty": "the project had nothing to run",
  "project-not-found": "the project is not there any more",
  "owner-has-no-key": "its owner had no key any more",
};

/** Why a due time started nothing; what the database said, where it is that. */
export function reasonOf({ reason }: Pick<ScheduleRun, "reason">): string {
  return reason ? (REASONS[reason] ?? reason) : "";
}

/** Why it stands still, and what makes it go on. */
export function pauseOf({ state, pause_reason, pause_note, failures }: Schedule): string {
  if (state !== "paused") return "";
  if (pause_reason === "failures")
    return `${count(failures, "failure")} in a row paused it. Resume it when what it starts works again.`;
  if (pause_reason === "owner-has-no-key")
    return "It was paused because its owner has no key any more: give them one, and resume it.";
  const why = pause_note ? `It was paused: ${pause_note}.` : "It was paused.";
  return `${why} Each due time until it is resumed is recorded as missed.`;
}

const ENDS: Readonly<Record<string, Word>> = {
  completed: "completed",
  finished: "done",
  dead: "dead",
  failed: "failed",
  cancelled: "cancelled",
  stopped: "cancelled",
  forced: "forced",
  lost: "lost",
};

/** One word for a due time: how what it started has ended, or what became of it instead. */
export function wordOf({ outcome, ended_at, ended_as }: ScheduleRun): Word {
  if (outcome !== "started") return outcome;
  return ended_at ? (ENDS[ended_as ?? ""] ?? "started") : "running";
}

/** Where what was started is looked at. */
export function hrefOf({ task_id, workflow_id, project_id }: ScheduleRun): string | undefined {
  if (task_id) return `/tasks/${task_id}`;
  if (workflow_id) return `/workflows/${workflow_id}`;
  return project_id ? `/projects/${project_id}` : undefined;
}

export type Kind = "task" | "workflow" | "project";

export function kindOf(target: Schedule["target"]): Kind {
  return (["task", "workflow", "project"] as const).find((each) => target[each]) ?? "task";
}

/** What is started, in a few words. */
export function targetOf(target: Schedule["target"]): string {
  const kind = kindOf(target);
  const said = (target[kind] ?? {}) as Record<string, unknown>;
  if (kind === "project") return said["mode"] === "loop" ? "a project, in a loop" : "a project’s next item";
  if (kind === "workflow") return `the workflow ${String(said["name"] ?? "")}`;
  return [said["task_type"] ?? said["actor"], said["provider"]].filter(Boolean).join(", ");
}

export function lateness({ jitter_seconds, catch_up, catch_up_window_seconds }: Schedule): string {
  const window = catch_up === "none" ? "" : ` within ${roughly(catch_up_window_seconds * 1000)}`;
  const jitter = jitter_seconds ? `; each is up to ${roughly(jitter_seconds * 1000)} late on purpose` : "";
  return `${CATCH_UPS[catch_up]}${window}${jitter}`;
}
