/** A document that is read again when something has happened, never more often than it says, and kept while nobody answers. */

import { untrack } from "svelte";
import { isPassing } from "./client.ts";
import { listen } from "./live/live.svelte.ts";

interface Often {
  /** The least time between two readings. */
  everyMs?: number;
  /** Also when nothing is said to have happened. */
  atLeastMs?: number;
}

export class Kept<T> {
  value = $state.raw<T | undefined>();
  trouble = $state.raw<unknown>();
  readonly #read: () => Promise<T>;
  #turn = 0;

  constructor(read: () => Promise<T>) {
    this.#read = read;
  }

  /** Only the latest answer counts, and trouble that will pass takes nothing away. */
  async read(): Promise<void> {
    const turn = ++this.#turn;
    try {
      const value = await this.#read();
      if (turn !== this.#turn) return;
      this.value = value;
      this.trouble = undefined;
    } catch (error) {
      if (turn === this.#turn && !(this.value !== undefined && isPassing(error))) this.trouble = error;
    }
  }
}

/** Reads at once, whenever what `read` depends on changes, and when a task changes its state, until the view goes. */
export function kept<T>(read: () => Promise<T>, { everyMs = 1500, atLeastMs = 20_000 }: Often = {}): Kept<T> {
  const document = new Kept(read);
  $effect(() => {
    void document.read();
    return untrack(() => whenever(() => void document.read(), everyMs, atLeastMs));
  });
  return document;
}

/** Calls soon after anything has happened, and once in a while; returns how to stop. */
export function whenever(act: () => void, everyMs: number, atLeastMs = 0): () => void {
  let waiting: ReturnType<typeof setTimeout> | undefined;
  let last = Date.now();
  const soon = (): void => {
    waiting ??= setTimeout(
      () => {
        waiting = undefined;
        last = Date.now();
        act();
      },
      Math.max(80, last + everyMs - Date.now()),
    );
  };
  const stop = listen({ event: ({ type }) => type !== "output" && soon(), reload: soon });
  const timer = atLeastMs ? setInterval(() => document.visibilityState === "visible" && soon(), atLeastMs) : undefined;
  return () => {
    stop();
    clearTimeout(waiting);
    clearInterval(timer);
  };
}
