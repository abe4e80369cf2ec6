/** A list that lives without jumping: rows change in place, new ones wait until they are asked for. */

import type { ListedTask, LiveEvent, State } from "../client.ts";

export interface Rows {
  shown: ListedTask[];
  /** Newer than what is shown, newest first. */
  waiting: ListedTask[];
  /** Whether there may be others between what waits and what is shown. */
  apart: boolean;
  /** The last `seq` told of each task: what is older says nothing new. */
  seqs: Readonly<Record<string, number>>;
  paused: boolean;
  /** What was told while paused, in order. */
  held: LiveEvent[];
}

export function rowsOf(shown: ListedTask[]): Rows {
  return { shown, waiting: [], apart: false, seqs: {}, paused: false, held: [] };
}

/** Changes of tasks that are known, in one pass over the list. Of those that are not, see `isNews`. */
export function withChanges(rows: Rows, said: readonly LiveEvent[]): Rows {
  if (said.length === 0) return rows;
  if (rows.paused) return { ...rows, held: [...rows.held, ...said] };
  const seqs: Record<string, number> = { ...rows.seqs };
  const changes = new Map<string, Change[]>();
  for (const each of said) {
    if (!tellsState(each) || (seqs[each.task_id] ?? 0) >= each.seq) continue;
    seqs[each.task_id] = each.seq;
    changes.set(each.task_id, [...(changes.get(each.task_id) ?? []), each]);
  }
  if (changes.size === 0) return rows;
  const change = (row: ListedTask): ListedTask => changes.get(row.task_id)?.reduce(changed, row) ?? row;
  return { ...rows, seqs, shown: rows.shown.map(change), waiting: rows.waiting.map(change) };
}

/** Whether the list has to be asked, because a task is told of that it does not hold. */
export function isNews(rows: Rows, said: readonly LiveEvent[]): boolean {
  const known = new Set([...rows.shown, ...rows.waiting].map((row) => row.task_id));
  return said.some((each) => each.type === "resync" || (tellsState(each) && !known.has(each.task_id)));
}

function tellsState(said: LiveEvent): said is Change {
  return said.type !== "resync" && said.type !== "output" && said.type !== "step";
}

/** The first page of the list, read again: rows that are shown stay where they are, and the rest waits. */
export function withFirstPage(rows: Rows, page: readonly ListedTask[]): Rows {
  const fresh = new Map(page.map((row) => [row.task_id, row]));
  const known = new Set(rows.shown.map((row) => row.task_id));
  const newest = rows.shown[0]?.task_id ?? "";
  // Ids are UUIDv7, so that their order is that of their creation.
  const waiting = page.filter((row) => !known.has(row.task_id) && row.task_id > newest);
  return {
    ...rows,
    shown: rows.shown.map((row) => newer(row, fresh.get(row.task_id))),
    waiting,
    apart: waiting.length > 0 && waiting.length === page.length,
  };
}

/** Somebody asked for the new ones. A list has no hole: where they are apart, it begins anew with them. */
export function revealed(rows: Rows): Rows {
  return { ...rows, shown: rows.apart ? rows.waiting : [...rows.waiting, ...rows.shown], waiting: [], apart: false };
}

export function withMore(rows: Rows, page: readonly ListedTask[]): Rows {
  const known = new Set(rows.shown.map((row) => row.task_id));
  return { ...rows, shown: [...rows.shown, ...page.filter((row) => !known.has(row.task_id))] };
}

export function paused(rows: Rows): Rows {
  return { ...rows, paused: true };
}

/** Everything that was held happens now, in its order. */
export function resumed(rows: Rows): Rows {
  return withChanges({ ...rows, paused: false, held: [] }, rows.held);
}

function newer(row: ListedTask, read: ListedTask | undefined): ListedTask {
  return read && read.updated_at >= row.updated_at ? read : row;
}

const ENDS: Partial<Record<LiveEvent["type"], State>> = {
  complete: "completed",
  error: "dead",
  cancelled: "cancelled",
};

type Change = Exclude<LiveEvent, { type: "resync" }>;

function changed(row: ListedTask, said: Change): ListedTask {
  const status = said.type === "progress" ? said.status : (ENDS[said.type] ?? row.status);
  const progress = said.type === "progress" ? said.progress : { ...row.progress, message: WORDS[status] ?? "" };
  const error = said.type === "error" || said.type === "progress" ? (said.error ?? row.error) : row.error;
  const at = progress.updated_at ?? row.updated_at;
  const started = status === "running" && said.attempt !== row.attempt ? at : row.started_at;
  return { ...row, status, progress, error, attempt: said.attempt, started_at: started, updated_at: at };
}

const WORDS: Partial<Record<State, string>> = { completed: "Completed", dead: "Failed", cancelled: "Cancelled" };
