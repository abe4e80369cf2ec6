/** What the second connection carries: the tasks that tabs have open, or a project's queue, whichever is looked at. */

export interface Wanting {
  taskIds: readonly string[];
  projectId: string | undefined;
  visible: boolean;
}

export type Line = { taskIds: string[] } | { projectId: string } | undefined;

/** Tasks come first, because nothing else tells their output; whoever shows a project without it reads it again
 * whenever a task changes. Only where nobody looks at a task, and somebody at a project, that one goes before. */
export function lineOf(tabs: Iterable<Wanting>): Line {
  const all = [...tabs];
  const looking = all.filter((tab) => tab.visible);
  const taskIds = [...new Set(all.flatMap((tab) => tab.taskIds))].sort();
  const projectId = (looking.findLast((tab) => tab.projectId) ?? all.findLast((tab) => tab.projectId))?.projectId;
  const before = looking.some((tab) => tab.projectId) && !looking.some((tab) => tab.taskIds.length);
  if (projectId && (before || !taskIds.length)) return { projectId };
  return taskIds.length ? { taskIds } : undefined;
}

/** The same for the same, also when it was made anew. */
export function nameOfLine(line: Line): string {
  if (!line) return "";
  return "projectId" in line ? `project ${line.projectId}` : line.taskIds.join();
}

/** Whose places are understood: all tasks have theirs in common, and each project its own. */
export function kindOfLine(line: Line): string {
  return line && "projectId" in line ? line.projectId : "tasks";
}
