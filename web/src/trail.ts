/** The list that one came from, kept for this tab: its tasks are a step to the left and to the right. */

const KEPT = "windlass-list";
const MOST = 1000;

interface Trail {
  href: string;
  taskIds: string[];
}

export function remember(rows: readonly { task_id: string }[], href: string): void {
  const taskIds = rows.slice(0, MOST).map((row) => row.task_id);
  sessionStorage.setItem(KEPT, JSON.stringify({ href, taskIds } satisfies Trail));
}

export interface Beside {
  href: string;
  at: number;
  of: number;
  before: string | undefined;
  after: string | undefined;
}

/** Where a task stands in the list that one came from, if it is in it. */
export function beside(taskId: string): Beside | undefined {
  const trail = JSON.parse(sessionStorage.getItem(KEPT) ?? "null") as Trail | null;
  const at = trail?.taskIds.indexOf(taskId) ?? -1;
  if (!trail || at < 0) return undefined;
  return {
    href: trail.href,
    at,
    of: trail.taskIds.length,
    before: trail.taskIds[at - 1],
    after: trail.taskIds[at + 1],
  };
}
