/** Which projects, items and runs are shown: the URL's query, and the way to another one. */

import type { ItemState, QueueState } from "../client.ts";

export const QUEUE_STATES: readonly QueueState[] = ["running", "stopping", "idle"];
export const ITEM_STATES: readonly ItemState[] = ["waiting", "running", "failed", "skipped", "done"];
/** What is still to be done, or has to be looked at. */
const OPEN: readonly ItemState[] = ["waiting", "running", "failed"];

export interface ListFilter {
  state: QueueState[];
  archived: boolean;
  q: string;
}

export function listFilterIn(query: URLSearchParams): ListFilter {
  return {
    state: query.getAll("state").filter((each): each is QueueState => QUEUE_STATES.includes(each as QueueState)),
    archived: query.get("archived") === "true",
    q: query.get("q") ?? "",
  };
}

export function hrefOfList(filter: ListFilter): string {
  const query = new URLSearchParams(filter.state.map((state) => ["state", state]));
  if (filter.archived) query.set("archived", "true");
  if (filter.q.trim()) query.set("q", filter.q.trim());
  return query.size ? `/projects?${query}` : "/projects";
}

export function toggled<T>(all: readonly T[], one: T): T[] {
  return all.includes(one) ? all.filter((each) => each !== one) : [...all, one];
}

/** Which items are chosen in the URL; none means those that are open. */
export function itemsIn(query: URLSearchParams): ItemState[] {
  return query.getAll("items").filter((each): each is ItemState => ITEM_STATES.includes(each as ItemState));
}

export function shownItems(chosen: readonly ItemState[]): ItemState[] {
  return [...(chosen.length ? chosen : OPEN)];
}

/** The same place with one filter changed; the others stay. */
export function withFilter(path: string, query: URLSearchParams, name: string, values: readonly string[]): string {
  const changed = new URLSearchParams(query);
  changed.delete(name);
  for (const value of values) changed.append(name, value);
  return changed.size ? `${path}?${changed}` : path;
}
