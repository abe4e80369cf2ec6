/** The shapes of the API by the names that one says, drawn from its OpenAPI document. */

import type { components } from "./schema.ts";

type Schemas = components["schemas"];

export type State = Schemas["State"];
export type Task = Schemas["TaskDocument"];
export type ListedTask = Schemas["ListedTaskDocument"];
/** What an actor of one's own takes is known to its schema, not to this document. */
export type NewTask = Omit<Schemas["NewTask"], "payload" | "actor"> & {
  actor: string;
  payload: Record<string, unknown>;
};
export type TaskError = Schemas["TaskErrorDocument"];
export type Progress = Schemas["ProgressDocument"];
export type TaskEvent = Schemas["EventDocument"];
export type Why = Schemas["WhyDocument"];
export type Actor = Schemas["ActorDocument"];
export type Provider = Schemas["ProviderDocument"];
export type Worker = Schemas["WorkerDocument"];
export type Queues = Schemas["QueuesDocument"];
export type Problem = Schemas["ProblemDocument"];

export const ENDED: readonly State[] = ["completed", "dead", "cancelled"];

export function hasEnded(task: { status: State }): boolean {
  return ENDED.includes(task.status);
}
