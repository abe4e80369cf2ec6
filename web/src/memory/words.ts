/** How an answer of the memory was come by, in sentences. */

import type { Found, TaskEvent } from "../client.ts";

/** Which model, how much of the memory it covers, and which way was taken. */
export function wayOf({ model, coverage, exact }: Pick<Found, "model" | "coverage" | "exact">): string {
  if (!model) return "There is no active model: by words alone.";
  const kind = model.name.startsWith("hash-") ? ", which compares letters and words and knows no meaning" : "";
  const share = coverage === null ? "" : `; ${percent(coverage)} of what could be found has its vector`;
  const way = exact ? "all of them were compared" : "of a large memory the likeliest were compared";
  return `By words and by ${model.name}${kind}${share}; ${way}.`;
}

function percent(share: number): string {
  if (share >= 1) return "all";
  return share > 0.99 ? "over 99 %" : `${Math.floor(share * 100)} %`;
}

export interface Recalled {
  attempt: number;
  memories: string[] | undefined;
  model: string;
  degraded: boolean;
  statsDays: number;
}

/** What each attempt was told of the past, as its task's history says. */
export function recalledIn(events: readonly TaskEvent[]): Recalled[] {
  return events
    .filter(({ type }) => type === "recall")
    .map(({ attempt, data }) => ({
      attempt,
      memories: Array.isArray(data["memories"]) ? data["memories"].map(String) : undefined,
      model: typeof data["model"] === "string" ? data["model"] : "",
      degraded: data["degraded"] === true,
      statsDays: typeof data["stats_days"] === "number" ? data["stats_days"] : 0,
    }));
}

/** What follows the title, which is how the text begins. */
export function restOf({ title, text }: { title: string; text: string }): string {
  if (!title || !text.startsWith(title)) return text;
  const rest = text.slice(title.length);
  return /^\s/.test(rest) ? rest.trim() : rest && `…${rest}`;
}

export interface Asked {
  q: string;
  subagent_type: string;
  project_id: string;
}

export function askedIn(query: URLSearchParams): Asked {
  const said = (name: string): string => query.get(name)?.trim() ?? "";
  return { q: said("q"), subagent_type: said("subagent_type"), project_id: said("project_id") };
}

export function hrefOfMemory(asked: Asked): string {
  const query = new URLSearchParams(Object.entries(asked).filter(([, value]) => value.trim()));
  return query.size ? `/memory?${query}` : "/memory";
}

/** Without what is not said. */
export function said<T extends object>(asked: T): Partial<T> {
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value)) as Partial<T>;
}
