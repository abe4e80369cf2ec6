/** The shapes of the API by the names that one says, drawn from its OpenAPI document. */

import type { components } from "../schema.d.ts";

type Schemas = components["schemas"];

export type State = Schemas["State"];
/** `R` is the type of what its actor returns. */
export type Task<R = unknown> = Omit<Schemas["TaskDocument"], "result"> & { result: R | null };
export type CompletedTask<R = unknown> = Task<R> & { status: "completed"; result: R };
export type EndedTask<R = unknown> = CompletedTask<R> | (Task<R> & { status: "dead" | "cancelled"; result: null });
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
/** A field that failed a check: `pointer` is a JSON pointer such as `/payload/seconds`. */
export type FieldError = Schemas["FieldProblem"];
export type Project = Schemas["ProjectDocument"];
export type ProjectQueue = Schemas["ProjectQueueDocument"];
export type QueueState = Schemas["QueueState"];
export type ForceStopped = Schemas["ForceStoppedDocument"];
export type Item = Schemas["ItemDocument"];
export type ItemState = Schemas["ItemState"];
export type Run = Schemas["RunDocument"];
export type Receipt = Schemas["ReceiptDocument"];
export type BatchAnswer = Schemas["BatchAnswer"];
/** A task to be: over the project's defaults, so that nothing has to be said. */
export type NewItem = Partial<Omit<Schemas["NewItem"], "payload" | "actor">> & {
  actor?: string;
  payload?: Record<string, unknown>;
};
export type ItemChange = NewItem & { before?: string; after?: string };
export type NewProject = {
  name: string;
  defaults?: NewItem;
  on_failure?: Project["on_failure"];
  user_id?: string;
};

export type Workflow = Schemas["WorkflowDocument"];
export type ListedWorkflow = Schemas["ListedWorkflowDocument"];
export type WorkflowStatus = Schemas["WorkflowStatus"];
export type WorkflowNode = Schemas["NodeDocument"];
export type WorkflowEdge = Schemas["EdgeDocument"];
export type Asked = Schemas["AskedDocument"];
/** How an escalated workflow goes on: what failed gets a new life, also what was cancelled behind it, or nothing. */
export type Resumption = Schemas["Resumption"];
/** A task of a workflow, by a key of its own; its payload may refer to results of what it depends on. */
export type NewWorkflowTask = Omit<NewTask, "depends_on"> & {
  key: string;
  depends_on?: (string | { key: string; on?: "completed" | "ended" })[];
  for_each?: { $from: string; path?: string };
};
export type NewWorkflow = {
  name: string;
  tasks: NewWorkflowTask[];
  failure_threshold?: number | null;
  tags?: string[];
};

export type Schedule = Schemas["ScheduleDocument"];
export type ScheduleRun = Schemas["ScheduleRunDocument"];
export type ScheduleState = Schemas["ScheduleState"];
/** What became of a due time. */
export type Outcome = Schemas["Outcome"];
export type SchedulePreview = Schemas["PreviewDocument"];
/** When it is due: by a cron expression in a zone, or every so many seconds. */
export type Times = { cron: string; timezone?: string } | { every_seconds: number };
/** What is started: one of these. */
export type ScheduleTarget =
  { task: NewTask } | { workflow: NewWorkflow } | { project: { project_id: string; mode?: "single" | "loop" } };
interface InTheWay {
  overlap?: Schedule["overlap"];
  catch_up?: Schedule["catch_up"];
  catch_up_window_seconds?: number;
  jitter_seconds?: number;
  pause_after_failures?: number | null;
}
export type NewSchedule = { name: string; target: ScheduleTarget } & Times & InTheWay;
export type ScheduleChange = {
  name?: string;
  cron?: string;
  every_seconds?: number;
  timezone?: string;
  target?: ScheduleTarget;
} & InTheWay;

export type Webhook = Schemas["WebhookDocument"];
/** With its secret, which is said once. */
export type SecretWebhook = Schemas["SecretWebhookDocument"];
export type EndpointState = Schemas["EndpointState"];
export type Delivery = Schemas["DeliveryDocument"];
export type WholeDelivery = Schemas["WholeDeliveryDocument"];
export type DeliveryState = Schemas["DeliveryState"];
export type WebhookEvent = Schemas["NewWebhook"]["events"][number];
export interface NewWebhook {
  url: string;
  events: WebhookEvent[];
  /** Only what is of all of these. */
  filter?: { project_id?: string; workflow_id?: string; actor?: string; tag?: string };
  scope?: Webhook["scope"];
  description?: string | null;
}

export type AgentEvent = Schemas["AgentEventDocument"];
export type Found = Schemas["FoundDocument"];
export type EmbeddingModel = Schemas["EmbeddingModelDocument"];
export type EmbeddingJob = Schemas["EmbeddingJobDocument"];
export type Usage = Schemas["UsageDocument"];
export type DailyFigures = Schemas["DailyStatistics"];

export const ENDED: readonly State[] = ["completed", "dead", "cancelled"];

export function hasEnded<T extends { status: State }>(
  task: T,
): task is T & { status: "completed" | "dead" | "cancelled" } {
  return ENDED.includes(task.status);
}
