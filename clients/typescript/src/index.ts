export { Backoff, sleep } from "./backoff.ts";
export {
  type LiveEvent,
  type Options,
  type StreamEvent,
  type Waiting,
  type Which,
  type WhichFigures,
  Windlass,
} from "./client.ts";
export * from "./documents.ts";
export { isPassing, Refused, refusal, TaskCancelled, TaskDead, Unreachable, WaitTimeout } from "./errors.ts";
export { Memory, type Question, type WhichEvents } from "./memory.ts";
export { type Batch, Projects, type QueueEvent } from "./projects.ts";
export { Schedules } from "./schedules.ts";
export type { components, paths } from "../schema.d.ts";
export type { Answer, Rest } from "./rest.ts";
export type { Page } from "./speaking.ts";
export type { Connection, Resuming } from "./stream.ts";
export { Webhooks } from "./webhooks.ts";
export { Approvals, type WhichWorkflows, type WorkflowEvent, Workflows } from "./workflows.ts";
