/** What a task is called: its owner's word, or its actor's name; and what it is about, where the list says it. */

interface Named {
  task_type: string | null;
  actor: string;
}

export function nameOf(task: Named): string {
  return task.task_type ?? task.actor;
}

const LONGEST_TITLE = 120;

/** The same, for who has the payload. */
export function titleIn({ prompt, content }: Record<string, unknown>): string {
  const text = String([prompt, content].find((each) => typeof each === "string") ?? "");
  return text.length > LONGEST_TITLE ? `${text.slice(0, LONGEST_TITLE)}…` : text;
}

/** The beginning of what was asked for. */
export function titleOf(task: object): string {
  const title = "title" in task ? task.title : undefined;
  return typeof title === "string" ? title : "";
}
