/** A task's attempts to scale: how long each waited, how long it ran, and what ended it. */

import type { TaskEvent } from "../client.ts";

export type Kind = "blocked" | "waited" | "ran" | "backed-off" | "held";

export interface Stretch {
  kind: Kind;
  from: number;
  to: number;
  attempt: number;
  /** It goes on. */
  open: boolean;
}

export interface Attempt {
  attempt: number;
  worker: string;
  startedAt: number;
  endedAt: number | undefined;
  /** The transition that ended it: `complete`, `retry`, `bury`, `stall`, `interrupt`, `cancel`; empty while it runs. */
  ending: string;
  error: string;
  /** How it is known that nothing of it is left, as JSON's text; empty where nobody said. */
  proof: string;
}

const ENDINGS = new Set(["complete", "retry", "bury", "stall", "interrupt", "cancel"]);
const AFTER: Readonly<Record<string, Kind>> = {
  submit: "waited",
  unblock: "waited",
  revive: "waited",
  claim: "ran",
  retry: "backed-off",
  stall: "backed-off",
  interrupt: "waited",
};

/** Stretch after stretch without a hole within a life; a finished task's last one has an end. */
export function stretches(events: readonly TaskEvent[], now: number): Stretch[] {
  const found: Stretch[] = [];
  let open: Stretch | undefined;
  for (const event of events) {
    const status = statusOf(event);
    const kind = status === "blocked" ? "blocked" : AFTER[event.type];
    if (!kind && !ENDINGS.has(event.type)) continue;
    const at = Date.parse(event.at);
    if (open) found.push({ ...open, to: Math.max(at, open.from), open: false });
    const goesOn = kind && !["dead", "cancelled", "completed"].includes(status);
    open = goesOn ? { kind, from: at, to: at, attempt: event.attempt, open: true } : undefined;
  }
  if (open) found.push({ ...open, to: Math.max(now, open.from) });
  return found;
}

export function attemptsOf(events: readonly TaskEvent[]): Attempt[] {
  const found: Attempt[] = [];
  for (const { type, at, attempt, data } of events) {
    if (type === "claim") {
      const worker = typeof data["worker_id"] === "string" ? data["worker_id"] : "";
      found.push({ attempt, worker, startedAt: Date.parse(at), endedAt: undefined, ending: "", error: "", proof: "" });
    } else if (ENDINGS.has(type)) {
      const last = found.at(-1);
      if (!last || last.ending) continue;
      last.endedAt = Date.parse(at);
      last.ending = type;
      last.error = errorIn(data);
      last.proof = data["proof"] ? JSON.stringify(data["proof"]) : "";
    }
  }
  return found;
}

function statusOf(event: TaskEvent): string {
  return typeof event.data["status"] === "string" ? event.data["status"] : "";
}

function errorIn(data: Record<string, unknown>): string {
  const error = data["error"] as { type?: string; message?: string } | null | undefined;
  return error ? `${error.type ?? "Error"}: ${error.message ?? ""}` : "";
}

/** Each stretch's place on a scale of 0 to 100. Revived after a long time dead, the time between the lives is cut to a
 * twentieth of the whole, or a dot would be all that is seen of the work. */
export function onScale(found: readonly Stretch[]): { stretch: Stretch; left: number; width: number; cut: boolean }[] {
  const lived = found.reduce((sum, each) => sum + (each.to - each.from), 0) || 1;
  const longestGap = lived / 20;
  let at = 0;
  let end = found[0]?.from ?? 0;
  const placed = found.map((stretch) => {
    const gap = Math.max(0, stretch.from - end);
    at += Math.min(gap, longestGap);
    const left = at;
    at += stretch.to - stretch.from;
    end = stretch.to;
    return { stretch, left, width: stretch.to - stretch.from, cut: gap > longestGap };
  });
  const whole = at || 1;
  return placed.map((each) => ({ ...each, left: (each.left / whole) * 100, width: (each.width / whole) * 100 }));
}
