/** Which files a task has made, as far as it says so. */

import type { TaskEvent } from "../client.ts";

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Out of a result, or out of what was said while it worked: `content_id`, `content_ids`. */
export function contentIdsIn(document: unknown): string[] {
  if (typeof document !== "object" || document === null) return [];
  const { content_id, content_ids } = document as { content_id?: unknown; content_ids?: unknown };
  const named = [content_id, ...(Array.isArray(content_ids) ? content_ids : [])];
  return named.filter((each): each is string => typeof each === "string" && ID.test(each));
}

/** Those that an attempt has named before its end, each once. */
export function arrivedIn(events: readonly TaskEvent[], attempt: number): string[] {
  const said = events.filter(
    (event) => event.attempt === attempt && (event.type === "output" || event.type === "step"),
  );
  return [...new Set(said.flatMap(({ data }) => [...contentIdsIn(data["data"]), ...contentIdsIn(data["result"])]))];
}

export function mediaUrl(contentId: string): string {
  return `/api/v1/media/${contentId}`;
}
