/** A stream that comes back to where it was: the last id seen goes with every new connection. */
import { Backoff } from "./backoff.ts";
import { type Message } from "./sse.ts";
export type Connection = "connecting" | "live" | "resuming";
export interface Resuming {
    /** Go on after this id: an event's `seq` for one task, a cursor for many. */
    after?: string | undefined;
    signal?: AbortSignal | undefined;
    /** Told whenever the connection is made or lost; `trouble` says why. */
    onConnection?: ((state: Connection, trouble?: unknown) => void) | undefined;
    /** Told of every place that a later stream may go on from, also between events. */
    onPlace?: ((id: string) => void) | undefined;
    backoff?: Backoff | undefined;
}
/** Makes one connection, which goes on after the id. */
export type Connect = (after: string, signal: AbortSignal | undefined) => Promise<Response>;
/** Every message once, over any number of connections; it ends when the server says that there is no more (204) or when
 * `isLast` does, and throws what will not pass. */
export declare function resuming(connect: Connect, isLast: (message: Message) => boolean, { after, signal, onConnection, onPlace, backoff }?: Resuming): AsyncGenerator<Message>;
