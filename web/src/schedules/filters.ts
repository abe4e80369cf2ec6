/** Which schedules and due times are shown: the URL's query, and the way to another one. */

import type { Outcome, ScheduleState } from "../client.ts";

export const SCHEDULE_STATES: readonly ScheduleState[] = ["active", "paused"];
export const OUTCOMES: readonly Outcome[] = ["started", "waiting", "skipped", "missed", "refused"];

export function statesIn(query: URLSearchParams): ScheduleState[] {
  return SCHEDULE_STATES.filter((each) => query.getAll("state").includes(each));
}

export function outcomesIn(query: URLSearchParams): Outcome[] {
  return OUTCOMES.filter((each) => query.getAll("outcome").includes(each));
}

/** The path with a name that is repeated for each value. */
export function hrefWith(path: string, name: string, values: readonly string[]): string {
  return values.length ? `${path}?${new URLSearchParams(values.map((each) => [name, each]))}` : path;
}
