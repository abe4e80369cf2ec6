/** A schedule while it is being written: fields as they are typed, and the body that they make. */

import type { Schedule, Times } from "../client.ts";
import { type Kind, kindOf } from "./words.ts";

export interface Draft {
  name: string;
  by: "cron" | "every";
  cron: string;
  timezone: string;
  everySeconds: number | null;
  kind: Kind;
  /** What is typed for each kind, as JSON's text, so that a change of mind loses nothing and big numbers survive. */
  task: string;
  workflow: string;
  projectId: string;
  mode: "single" | "loop";
  overlap: Schedule["overlap"];
  catchUp: Schedule["catch_up"];
  window: number | null;
  jitter: number | null;
  pauseAfter: number | null;
}

const TASK = `{
  "actor": "summarize",
  "payload": {"content": "What happened today?"}
}`;
const WORKFLOW = `{
  "name": "report",
  "tasks": [{"key": "draft", "actor": "summarize", "payload": {"content": "…"}}]
}`;

export function draftOf(schedule: Schedule | undefined, zone: string): Draft {
  const target = schedule?.target ?? {};
  const text = (kind: Kind, else_: string): string => (target[kind] ? JSON.stringify(target[kind], null, 2) : else_);
  const project = (target["project"] ?? {}) as { project_id?: string; mode?: Draft["mode"] };
  return {
    name: schedule?.name ?? "",
    by: schedule?.every_seconds ? "every" : "cron",
    cron: schedule?.cron ?? "",
    timezone: schedule?.timezone ?? zone,
    everySeconds: schedule?.every_seconds ?? 3600,
    kind: kindOf(target),
    task: text("task", TASK),
    workflow: text("workflow", WORKFLOW),
    projectId: project.project_id ?? "",
    mode: project.mode ?? "single",
    overlap: schedule?.overlap ?? "skip",
    catchUp: schedule?.catch_up ?? "latest",
    window: schedule?.catch_up_window_seconds ?? 3600,
    jitter: schedule?.jitter_seconds ?? 0,
    pauseAfter: schedule?.pause_after_failures ?? null,
  };
}

/** What can be looked ahead at; nothing while it is half written. */
export function timesIn({ by, cron, timezone, everySeconds }: Draft): Times | undefined {
  if (by === "every") return everySeconds ? { every_seconds: everySeconds } : undefined;
  return cron.trim() && timezone.trim() ? { cron: cron.trim(), timezone: timezone.trim() } : undefined;
}

/** Why it cannot be saved yet, if that is seen from here; the server knows the rest. */
export function faultIn(draft: Draft): string {
  if (!draft.name.trim()) return "It has no name yet.";
  if (!timesIn(draft)) return "It does not say when it is due yet.";
  if (draft.kind === "project") return draft.projectId ? "" : "No project is chosen yet.";
  return isObject(draft[draft.kind]) ? "" : `The ${draft.kind} is no JSON object.`;
}

export function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** As the API takes it. A target that nobody has touched is not said again. */
export function bodyOf(draft: Draft, schedule?: Schedule): string {
  const members = Object.entries({
    name: draft.name.trim(),
    ...timesIn(draft),
    overlap: draft.overlap,
    catch_up: draft.catchUp,
    catch_up_window_seconds: draft.window ?? 3600,
    jitter_seconds: draft.jitter ?? 0,
    pause_after_failures: draft.pauseAfter || null,
  }).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  const target = targetIn(draft);
  if (!schedule || target !== targetIn(draftOf(schedule, ""))) members.push(`"target": ${target}`);
  return `{${members.join(", ")}}`;
}

function targetIn(draft: Draft): string {
  if (draft.kind !== "project") return `{"${draft.kind}": ${draft[draft.kind]}}`;
  return JSON.stringify({ project: { project_id: draft.projectId, mode: draft.mode } });
}
