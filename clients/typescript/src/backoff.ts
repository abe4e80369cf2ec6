/** How long to wait before the next try: longer each time, never in step with others, never less than was asked for. */

export class Backoff {
  readonly #first: number;
  readonly #longest: number;
  #next: number;

  constructor({ firstMs = 200, longestMs = 10_000 } = {}) {
    this.#first = firstMs;
    this.#longest = longestMs;
    this.#next = firstMs;
  }

  /** Milliseconds; with 20 % of jitter. */
  pause(atLeastMs = 0): number {
    const pause = Math.max(this.#next, atLeastMs) * (1 + Math.random() / 5);
    this.#next = Math.min(this.#next * 2, this.#longest);
    return pause;
  }

  renew(): void {
    this.#next = this.#first;
  }
}

/** Resolves after so many milliseconds, or at once when the signal says that nobody waits any more. */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", done);
  });
}
