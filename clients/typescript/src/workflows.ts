/** Workflows: graphs of tasks; and the people who are asked before one of them starts. */

import type {
  Asked,
  ListedWorkflow,
  NewWorkflow,
  Progress,
  Resumption,
  State,
  Task,
  TaskError,
  Workflow,
  WorkflowStatus,
} from "./documents.ts";
import { json, type Page, queryOf, type Speaking } from "./speaking.ts";
import { type Resuming, resuming } from "./stream.ts";

/** What becomes of a workflow: itself on every change, the last time by how it ended, and its tasks' progress. */
export type WorkflowEvent = { cursor: string } & (
  | ({ event: "workflow" | "complete" | "error" | "cancelled" } & Workflow)
  | {
      event: "progress";
      task_id: string;
      /** Null of a task that was added later. */
      key: string | null;
      seq: number;
      attempt: number;
      status: State;
      progress: Progress;
      error?: TaskError | null;
    }
);

export interface WhichWorkflows {
  status?: WorkflowStatus[];
  name?: string;
  tag?: string[];
  user_id?: string;
  created_after?: string;
  created_before?: string;
  cursor?: string;
  limit?: number;
}

const LAST = new Set(["complete", "error", "cancelled"]);

export class Workflows {
  readonly #speaking: Speaking;

  constructor(speaking: Speaking) {
    this.#speaking = speaking;
  }

  /** All its tasks or none. It is safe to lose the answer: the repeated request finds what the first one made. */
  async create(
    workflow: NewWorkflow,
    { idempotencyKey = crypto.randomUUID() }: { idempotencyKey?: string } = {},
  ): Promise<Workflow> {
    const asked = json("POST", workflow, { "Idempotency-Key": idempotencyKey });
    return (await this.#speaking.patiently("/api/v1/workflows", asked)) as Workflow;
  }

  async list(which: WhichWorkflows = {}): Promise<Page<ListedWorkflow>> {
    return (await this.#speaking.patiently(`/api/v1/workflows${queryOf({ ...which })}`, {})) as Page<ListedWorkflow>;
  }

  /** With `wait` it is answered at its end, when it is escalated, or after so many seconds. */
  async get(workflowId: string, { wait }: { wait?: number } = {}): Promise<Workflow> {
    return (await this.#speaking.patiently(at(workflowId) + queryOf({ wait }), {})) as Workflow;
  }

  /** How it stands, and then everything until it has ended; an escalated one has not. */
  async *stream(workflowId: string, options: Resuming = {}): AsyncGenerator<WorkflowEvent> {
    const connect = this.#speaking.connect(at(workflowId, "/stream"));
    for await (const { id, event, data } of resuming(connect, ({ event }) => LAST.has(event), options))
      yield { ...JSON.parse(data), event, cursor: id } as WorkflowEvent;
  }

  /** Asked once: a repeated call would find that it is not escalated any more. */
  async resume(workflowId: string, how: { retry?: Resumption; reason?: string } = {}): Promise<Workflow> {
    return (await this.#speaking.once(at(workflowId, "/resume"), json("POST", how))) as Workflow;
  }

  /** Asked until it is answered: to cancel twice is to cancel once. */
  async cancel(workflowId: string, why: { reason?: string } = {}): Promise<Workflow> {
    return (await this.#speaking.patiently(at(workflowId, "/cancel"), json("POST", why))) as Workflow;
  }
}

export class Approvals {
  readonly #speaking: Speaking;

  constructor(speaking: Speaking) {
    this.#speaking = speaking;
  }

  /** What waits for a word, the oldest task first. */
  async list(which: { cursor?: string; limit?: number } = {}): Promise<Page<Asked>> {
    return (await this.#speaking.patiently(`/api/v1/approvals${queryOf(which)}`, {})) as Page<Asked>;
  }

  /** Lets it start. Decided once: whoever comes second is refused with `already-decided`. */
  async approve(taskId: string, said: { comment?: string } = {}): Promise<Task> {
    return this.#decide(taskId, "approve", said);
  }

  /** Cancels it, and what depends on it is buried. */
  async reject(taskId: string, said: { comment?: string } = {}): Promise<Task> {
    return this.#decide(taskId, "reject", said);
  }

  async #decide(taskId: string, verb: string, said: object): Promise<Task> {
    const path = `/api/v1/tasks/${encodeURIComponent(taskId)}/${verb}`;
    return (await this.#speaking.once(path, json("POST", said))) as Task;
  }
}

function at(workflowId: string, below = ""): string {
  return `/api/v1/workflows/${encodeURIComponent(workflowId)}${below}`;
}
