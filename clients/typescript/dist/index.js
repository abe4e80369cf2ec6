export { Backoff, sleep } from "./backoff.js";
export { Windlass, } from "./client.js";
export * from "./documents.js";
export { isPassing, Refused, refusal, TaskCancelled, TaskDead, Unreachable, WaitTimeout } from "./errors.js";
export { Memory } from "./memory.js";
export { Projects } from "./projects.js";
export { Schedules } from "./schedules.js";
export { Webhooks } from "./webhooks.js";
export { Approvals, Workflows } from "./workflows.js";
