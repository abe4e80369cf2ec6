/** What a project's runs add up to: how many on each day, how long the middle one took, and how they ended. */

import type { Run } from "../client.ts";

export type End = Exclude<Run["state"], "running"> | "forced";

export const ENDS: readonly End[] = ["completed", "dead", "cancelled", "forced", "withdrawn", "lost"];

/** A run that was stopped by force has a receipt, and is cancelled, too. */
export function endOfRun(run: Pick<Run, "state" | "receipt">): End | undefined {
  if (run.state === "running") return undefined;
  return run.receipt ? "forced" : run.state;
}

export function endsOf(runs: readonly Pick<Run, "state" | "receipt">[]): { end: End; runs: number }[] {
  const ends = runs.map(endOfRun);
  return ENDS.map((end) => ({ end, runs: ends.filter((each) => each === end).length })).filter(({ runs }) => runs > 0);
}

/** Of those that were let run to their end, in milliseconds. */
export function medianOf(runs: readonly Pick<Run, "state" | "started_at" | "ended_at">[]): number | undefined {
  const took = runs
    .filter((run) => run.ended_at && (run.state === "completed" || run.state === "dead"))
    .map((run) => Date.parse(run.ended_at!) - Date.parse(run.started_at))
    .sort((a, b) => a - b);
  if (took.length === 0) return undefined;
  const middle = took.length >> 1;
  return took.length % 2 ? took[middle]! : (took[middle - 1]! + took[middle]!) / 2;
}

/** The day that something began on, where the one who looks lives. */
export function dayOf(at: string | number): string {
  const day = new Date(at);
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

/** The last days, also those without a run; each as high as its share of the fullest, in hundredths. */
export function daysOf(
  runs: readonly Pick<Run, "started_at">[],
  now: number,
  days = 14,
): { day: string; runs: number; share: number }[] {
  const counted = new Map<string, number>();
  for (const { started_at } of runs) counted.set(dayOf(started_at), (counted.get(dayOf(started_at)) ?? 0) + 1);
  const today = new Date(now);
  const all = Array.from({ length: days }, (_, back) => {
    const day = dayOf(new Date(today.getFullYear(), today.getMonth(), today.getDate() - (days - 1 - back)).getTime());
    return { day, runs: counted.get(day) ?? 0 };
  });
  const most = Math.max(1, ...all.map((each) => each.runs));
  return all.map((each) => ({ ...each, share: Math.round((each.runs / most) * 100) }));
}
