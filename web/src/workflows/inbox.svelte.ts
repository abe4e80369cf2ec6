/** What waits for a person's word: read for the number in the navigation, and shown by the inbox and by graphs. */

import { ask, rest } from "../api.ts";
import type { Asked, Page } from "../client.ts";
import { Kept, whenever } from "../refreshing.svelte.ts";

export const MOST = 100;

export const inbox = new Kept<Page<Asked>>(() =>
  ask(rest.GET("/api/v1/approvals", { params: { query: { limit: MOST } } })),
);

/** Reads it now, soon after something has happened, and once in a while; returns how to stop. */
export function watchInbox(everyMs: number): () => void {
  void inbox.read();
  return whenever(() => void inbox.read(), everyMs, 20_000);
}

/** As the navigation says it; empty when nobody is waited for. */
export function waitingCount(page: Page<Asked> | undefined): string {
  if (!page?.items.length) return "";
  return page.next_cursor ? `${MOST}+` : String(page.items.length);
}
