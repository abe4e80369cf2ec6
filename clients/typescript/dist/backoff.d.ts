/** How long to wait before the next try: longer each time, never in step with others, never less than was asked for. */
export declare class Backoff {
    #private;
    constructor({ firstMs, longestMs }?: {
        firstMs?: number | undefined;
        longestMs?: number | undefined;
    });
    /** Milliseconds; with 20 % of jitter. */
    pause(atLeastMs?: number): number;
    renew(): void;
}
/** Resolves after so many milliseconds, or at once when the signal says that nobody waits any more. */
export declare function sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
