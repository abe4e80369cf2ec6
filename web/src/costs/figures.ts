/** What the days cost, added up: by day, and by whatever they are split by. */

import type { DailyFigures } from "../client.ts";

export const GROUPS = ["user_id", "project_id", "provider", "actor", "subagent_type"] as const;
export type Group = (typeof GROUPS)[number];
export const GROUP_NAMES: Readonly<Record<Group, string>> = {
  user_id: "User",
  project_id: "Project",
  provider: "Provider",
  actor: "Actor",
  subagent_type: "Agent",
};

export interface Sum {
  name: string;
  created: number;
  completed: number;
  failed: number;
  /** Null where nobody said. */
  cost: number | null;
  failedCost: number | null;
  tokens: number | null;
}

export function groupIn(query: URLSearchParams): Group {
  return GROUPS.find((each) => each === query.get("by")) ?? "provider";
}

export const SPANS = [7, 30, 90, 365] as const;

export function spanIn(query: URLSearchParams): number {
  return SPANS.find((each) => String(each) === query.get("days")) ?? 30;
}

export function hrefOfCosts(by: Group, days: number): string {
  return `/costs?${new URLSearchParams({ by, days: String(days) })}`;
}

function nothing(name: string): Sum {
  return { name, created: 0, completed: 0, failed: 0, cost: null, failedCost: null, tokens: null };
}

function plus(one: number | null, other: number | null): number | null {
  return one === null && other === null ? null : (one ?? 0) + (other ?? 0);
}

function added(sum: Sum, day: DailyFigures): Sum {
  return {
    name: sum.name,
    created: sum.created + day.created,
    completed: sum.completed + day.completed,
    failed: sum.failed + day.failed,
    cost: plus(sum.cost, day.cost_usd),
    failedCost: plus(sum.failedCost, day.failed_cost_usd),
    tokens: plus(sum.tokens, plus(day.prompt_tokens, day.completion_tokens)),
  };
}

export function inAll(days: readonly DailyFigures[]): Sum {
  return days.reduce(added, nothing(""));
}

/** What cost most first; where nothing did, what was most. */
export function byGroup(days: readonly DailyFigures[], group: Group): Sum[] {
  const sums = new Map<string, Sum>();
  for (const day of days) {
    const name = day[group] ?? "";
    sums.set(name, added(sums.get(name) ?? nothing(name), day));
  }
  return [...sums.values()].sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0) || b.created - a.created);
}

/** Every day of the span up to today in UTC, the oldest first, also those on which nothing was. */
export function byDay(days: readonly DailyFigures[], span: number, now: number): Sum[] {
  const DAY_MS = 86_400_000;
  const names = Array.from({ length: span }, (_, at) =>
    new Date(now - (span - 1 - at) * DAY_MS).toISOString().slice(0, 10),
  );
  const sums = new Map(names.map((name) => [name, nothing(name)]));
  for (const day of days) {
    const sum = sums.get(day.day);
    if (sum) sums.set(day.day, added(sum, day));
  }
  return [...sums.values()];
}

/** The share that went into what failed, in whole percent; nothing where nothing was spent. */
export function wasted({ cost, failedCost }: Sum): string {
  if (!cost || !failedCost) return cost ? "0 %" : "";
  const share = (failedCost / cost) * 100;
  return share < 1 ? "under 1 %" : `${Math.round(share)} %`;
}

/** The tasks that a figure counts. */
export function hrefOfTasks(group: Group, name: string, from: string, status?: string): string {
  const query = new URLSearchParams();
  if (status) query.set("status", status);
  if (name) query.set(group, name);
  query.set("created_after", `${from}T00:00:00Z`);
  return `/tasks?${query}`;
}
