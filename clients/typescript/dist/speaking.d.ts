/** What the parts of the client have in common: how they ask, and what goes into a query and a body. */
import type { Connect } from "./stream.ts";
export interface Page<T> {
    items: T[];
    next_cursor?: string | null;
}
/** How a client speaks: once, or again until it is answered. */
export interface Speaking {
    once(path: string, init: RequestInit): Promise<unknown>;
    patiently(path: string, init: RequestInit): Promise<unknown>;
    connect(path: string): Connect;
}
export type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;
export declare function queryOf(wanted: Query): string;
/** With a body also where nothing is to be said: a session's changes have to be JSON. */
export declare function json(method: string, body?: object, headers?: Record<string, string>): RequestInit;
