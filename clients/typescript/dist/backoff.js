/** How long to wait before the next try: longer each time, never in step with others, never less than was asked for. */
export class Backoff {
    #first;
    #longest;
    #next;
    constructor({ firstMs = 200, longestMs = 10_000 } = {}) {
        this.#first = firstMs;
        this.#longest = longestMs;
        this.#next = firstMs;
    }
    /** Milliseconds; with 20 % of jitter. */
    pause(atLeastMs = 0) {
        const pause = Math.max(this.#next, atLeastMs) * (1 + Math.random() / 5);
        this.#next = Math.min(this.#next * 2, this.#longest);
        return pause;
    }
    renew() {
        this.#next = this.#first;
    }
}
/** Resolves after so many milliseconds, or at once when the signal says that nobody waits any more. */
export function sleep(milliseconds, signal) {
    return new Promise((resolve) => {
        if (signal?.aborted)
            return resolve();
        const done = () => {
            clearTimeout(timer);
            signal?.removeEventListener("abort", done);
            resolve();
        };
        const timer = setTimeout(done, milliseconds);
        signal?.addEventListener("abort", done);
    });
}
