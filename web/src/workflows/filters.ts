/** Which workflows are shown: the URL's query, and the way to another one. */

import type { WorkflowStatus } from "../client.ts";

export const WORKFLOW_STATUSES: readonly WorkflowStatus[] = [
  "running",
  "escalated",
  "failed",
  "completed",
  "cancelled",
] as const;

export interface WorkflowFilter {
  status: WorkflowStatus[];
  tag: string[];
  name: string;
  user_id: string;
}

export function workflowsIn(query: URLSearchParams): WorkflowFilter {
  return {
    status: WORKFLOW_STATUSES.filter((each) => query.getAll("status").includes(each)),
    tag: query.getAll("tag").filter(Boolean),
    name: query.get("name") ?? "",
    user_id: query.get("user_id") ?? "",
  };
}

export function hrefOfWorkflows({ status, tag, name, user_id }: WorkflowFilter): string {
  const query = new URLSearchParams(status.map((each) => ["status", each]));
  for (const each of tag) query.append("tag", each);
  if (name.trim()) query.set("name", name.trim());
  if (user_id.trim()) query.set("user_id", user_id.trim());
  return query.size ? `/workflows?${query}` : "/workflows";
}

/** As the API is asked: without what is not said. */
export function askedOf({ status, tag, name, user_id }: WorkflowFilter): Partial<WorkflowFilter> {
  return {
    ...(status.length ? { status } : {}),
    ...(tag.length ? { tag } : {}),
    ...(name ? { name } : {}),
    ...(user_id ? { user_id } : {}),
  };
}
