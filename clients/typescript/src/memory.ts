/** Memory: what agents did, found again; the models that it is compared by, and the jobs that bring their vectors. */

import type { AgentEvent, EmbeddingJob, EmbeddingModel, Found, State } from "./documents.ts";
import { json, type Page, queryOf, type Speaking } from "./speaking.ts";

export interface Question {
  q: string;
  limit?: number;
  project_id?: string;
  subagent_type?: string;
  created_after?: string;
}

export interface WhichEvents {
  task_id?: string;
  actor?: string;
  status?: Extract<State, "completed" | "dead" | "cancelled">;
  subagent_type?: string;
  project_id?: string;
  workflow_id?: string;
  user_id?: string;
  cursor?: string;
  limit?: number;
}

export class Memory {
  readonly #speaking: Speaking;

  constructor(speaking: Speaking) {
    this.#speaking = speaking;
  }

  /** The nearest first. `degraded` says that no vector for the question came in time: words alone were compared. */
  async search(question: Question): Promise<Found> {
    return (await this.#speaking.patiently("/api/v1/memory/search", json("POST", question))) as Found;
  }

  /** What agents did, newest first. */
  async events(which: WhichEvents = {}): Promise<Page<AgentEvent>> {
    return (await this.#speaking.patiently(`/api/v1/agent-events${queryOf({ ...which })}`, {})) as Page<AgentEvent>;
  }

  async event(eventId: string): Promise<AgentEvent> {
    return (await this.#speaking.patiently(of("agent-events", eventId), {})) as AgentEvent;
  }

  /** Takes it out, with its vectors; the task and its history stay. */
  async forget(eventId: string): Promise<void> {
    await this.#speaking.once(of("agent-events", eventId), json("DELETE"));
  }

  async models(): Promise<EmbeddingModel[]> {
    return ((await this.#speaking.patiently("/api/v1/embedding-models", {})) as { items: EmbeddingModel[] }).items;
  }

  /** New events get its vectors from now on, and those that are there by and by. */
  async addModel(model: { name: string; provider: string; dimensions: number }): Promise<EmbeddingModel> {
    return (await this.#speaking.once("/api/v1/embedding-models", json("POST", model))) as EmbeddingModel;
  }

  /** From here on questions are asked in its vectors. */
  async activateModel(modelId: string): Promise<EmbeddingModel> {
    const path = of("embedding-models", modelId, "/activate");
    return (await this.#speaking.patiently(path, json("POST"))) as EmbeddingModel;
  }

  /** With all its vectors; not the active one. */
  async deleteModel(modelId: string): Promise<void> {
    await this.#speaking.once(of("embedding-models", modelId), json("DELETE"));
  }

  async jobs(
    which: { state?: EmbeddingJob["state"]; cursor?: string; limit?: number } = {},
  ): Promise<Page<EmbeddingJob>> {
    return (await this.#speaking.patiently(`/api/v1/embedding-jobs${queryOf(which)}`, {})) as Page<EmbeddingJob>;
  }

  /** Gives a failed one's task a new life. */
  async retryJob(jobId: string): Promise<EmbeddingJob> {
    return (await this.#speaking.once(of("embedding-jobs", jobId, "/retry"), json("POST"))) as EmbeddingJob;
  }
}

function of(kind: string, id: string, below = ""): string {
  return `/api/v1/${kind}/${encodeURIComponent(id)}${below}`;
}
