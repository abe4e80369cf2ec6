/** A list that lives without jumping: rows change in place, new ones wait until they are asked for. */

import type { ListedTask, LiveEvent, State } from "../client.ts";

export interface Rows {
  shown: ListedTask[];
  /** Newer than what is shown, newest first. */
  waiting: ListedTask[];
  /** The last `seq` told of each task: what is older says nothing new. */
  seqs: Readonly<Record<string, number>>;
  paused: boolean;
  /** What was told while paused, in order. */
  held: LiveEvent[];
}

export function rowsOf(shown: ListedTask[]): Rows {
  return { shown, waiting: [], seqs: {}, paused: false, held: [] };
}

/** A change of a task that is known. Of one that is not, see `isNews`. */
export function withChange(rows: Rows, said: LiveEvent): Rows {
  if (rows.paused) return { ...rows, held: [...rows.held, said] };
  if (said.type === "resync" || said.type === "output" || said.type === "step") return rows;
  if ((rows.seqs[said.task_id] ?? 0) >= said.seq) return rows;
  const change = (row: ListedTask): ListedTask => (row.task_id === said.task_id ? changed(row, said) : row);
  const seqs = { ...rows.seqs, [said.task_id]: said.seq };
  return { ...rows, seqs, shown: rows.shown.map(change), waiting: rows.waiting.map(change) };
}

/** Whether the list has to be asked, because a task is told of that it does not hold. */
export function isNews(rows: Rows, said: LiveEvent): boolean {
  if (said.type === "resync") return true;
  const holds = (row: ListedTask): boolean => row.task_id === said.task_id;
  return said.type !== "output" && said.type !== "step" && !rows.shown.some(holds) && !rows.waiting.some(holds);
}

/** The first page of the list, read again: rows that are shown stay where they are, and the rest waits. */
export function withFirstPage(rows: Rows, page: readonly ListedTask[]): Rows {
  const fresh = new Map(page.map((row) => [row.task_id, row]));
  const known = new Set(rows.shown.map((row) => row.task_id));
  const newest = rows.shown[0]?.task_id ?? "";
  return {
    ...rows,
    shown: rows.shown.map((row) => newer(row, fresh.get(row.task_id))),
    // Ids are UUIDv7, so that their order is that of their creation.
    waiting: page.filter((row) => !known.has(row.task_id) && row.task_id > newest),
  };
}

/** Somebody asked for the new ones. */
export function revealed(rows: Rows): Rows {
  return { ...rows, shown: [...rows.waiting, ...rows.shown], waiting: [] };
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
  return rows.held.reduce(withChange, { ...rows, paused: false, held: [] });
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
