/** What changed while nobody looked at this tab: from when it was hidden until it has caught up. */

/** A shorter look elsewhere is none. */
const SHORTEST_MS = 5000;
/** What was missed is told at once on return. */
export const CATCH_UP_MS = 3000;

export interface Away {
  left: number | undefined;
  back: number | undefined;
  taskIds: ReadonlySet<string>;
  /** More than could be told one by one. */
  many: boolean;
}

export const HERE: Away = { left: undefined, back: undefined, taskIds: new Set(), many: false };

export function hidden(now: number): Away {
  return { ...HERE, left: now };
}

export function returned(away: Away, now: number): Away {
  if (away.left === undefined || away.back !== undefined) return away;
  return now - away.left < SHORTEST_MS ? HERE : { ...away, back: now };
}

export function withNews(away: Away, taskId: string | "many", now: number): Away {
  if (away.left === undefined || (away.back !== undefined && now - away.back > CATCH_UP_MS)) return away;
  if (taskId === "many") return { ...away, many: true };
  return away.taskIds.has(taskId) ? away : { ...away, taskIds: new Set([...away.taskIds, taskId]) };
}

/** What is to be said of it; nothing while one is away, or when nothing has happened. */
export function saidOf(away: Away): { text: string; since: string } | undefined {
  if (away.left === undefined || away.back === undefined || !(away.taskIds.size || away.many)) return undefined;
  const many = away.taskIds.size === 1 ? "1 task" : `${away.taskIds.size.toLocaleString("en")} tasks`;
  const since = new Date(away.left).toISOString();
  return { text: `${away.many ? "Many tasks" : many} changed while you were away.`, since };
}
