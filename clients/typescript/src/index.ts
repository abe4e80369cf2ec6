export { Backoff, sleep } from "./backoff.ts";
export { type LiveEvent, type Options, type StreamEvent, type Which, Windlass } from "./client.ts";
export * from "./documents.ts";
export { isPassing, Refused, refusal, Unreachable } from "./errors.ts";
export type { components, paths } from "./schema.ts";
export type { Connection, Resuming } from "./stream.ts";
