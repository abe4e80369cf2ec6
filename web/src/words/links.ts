/** An address of another page out of its template: `{task_id}`, `{provider}`, `{actor}`, `{from}`, `{to}`. */

interface Named {
  task_id: string;
  provider: string;
  actor: string;
  created_at: string;
  completed_at: string | null;
}

const AROUND_MS = 60_000;

/** Times are milliseconds, a minute before its beginning and after its end, which is now while it goes on. */
export function filled(template: string, task: Named, now = Date.now()): string {
  const values: Record<string, string> = {
    task_id: task.task_id,
    provider: task.provider,
    actor: task.actor,
    from: String(Date.parse(task.created_at) - AROUND_MS),
    to: String((task.completed_at ? Date.parse(task.completed_at) : now) + AROUND_MS),
  };
  return template.replace(/\{(\w+)\}/g, (whole, name: string) => encodeURIComponent(values[name] ?? whole));
}
