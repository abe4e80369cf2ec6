/** A task's story out of two sources, history by pages and what is said live: by `seq`, without a gap or a double. */

import type { LiveEvent, TaskEvent } from "../client.ts";

export interface Story {
  /** Ascending by `seq`, each once. */
  events: TaskEvent[];
  /** Up to here the whole history was read, page by page: the place to read on from. */
  readUpTo: number;
  /** Up to here it was read without its output, which is told live once one listens: nothing says that none is missing. */
  toldUpTo: number;
}

export const EMPTY_STORY: Story = { events: [], readUpTo: 0, toldUpTo: 0 };

/** What a page of history adds. Its rows win over what was said live of the same `seq`: they hold more. */
export function withPage(story: Story, page: readonly TaskEvent[], { whole }: { whole: boolean }): Story {
  if (page.length === 0) return story;
  const last = page.at(-1)!.seq;
  const readUpTo = whole ? Math.max(story.readUpTo, last) : story.readUpTo;
  return { events: merged(story.events, page), readUpTo, toldUpTo: Math.max(story.toldUpTo, last) };
}

/** What is said live is kept only where it says everything, which is output; of anything else the history is asked. */
export function withLive(story: Story, said: readonly LiveEvent[], at: string): Story {
  // By `seq`: whatever is told twice is kept once.
  const news = new Map<number, TaskEvent>();
  for (const each of said) {
    if (each.type !== "output" || has(story.events, each.seq)) continue;
    const { seq, attempt, text, data } = each;
    news.set(seq, { seq, attempt, at, type: "output", data: text === undefined ? { data } : { text } });
  }
  const inOrder = [...news.values()].sort((a, b) => a.seq - b.seq);
  return inOrder.length ? { ...story, events: merged(story.events, inOrder) } : story;
}

/** Both ascend; nearly always the second goes behind the first. */
function merged(known: readonly TaskEvent[], more: readonly TaskEvent[]): TaskEvent[] {
  if (known.length === 0 || known.at(-1)!.seq < more[0]!.seq) return [...known, ...more];
  const bySeq = new Map(known.map((event) => [event.seq, event]));
  for (const event of more) bySeq.set(event.seq, event);
  return [...bySeq.values()].sort((a, b) => a.seq - b.seq);
}

function has(events: readonly TaskEvent[], seq: number): boolean {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle]!.seq < seq) low = middle + 1;
    else high = middle;
  }
  return events[low]?.seq === seq;
}
