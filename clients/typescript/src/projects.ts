/** Projects: a backlog, and a run queue that can be stopped. */

import type {
  BatchAnswer,
  ForceStopped,
  Item,
  ItemChange,
  ItemState,
  NewItem,
  NewProject,
  Project,
  ProjectQueue,
  QueueState,
  Run,
} from "./documents.ts";
import { json, type Page, type Query, queryOf, type Speaking } from "./speaking.ts";
import { type Resuming, resuming } from "./stream.ts";

/** What happens to a queue; `seq` is the place to resume from. A `status` without a `type` is how it stands now. */
export type QueueEvent = { seq: number } & (
  | ({ event: "status"; type?: string } & Omit<ProjectQueue, "elapsed_ms" | "still_running" | "open_jobs">)
  | ({ event: "run"; type: string } & Pick<Run, "run_id" | "item_id" | "task_id" | "mode" | "state" | "started_at"> &
      Partial<Pick<Run, "ended_at" | "error" | "revived_from">>)
  | ({ event: "item"; type: string } & Pick<Item, "item_id" | "position" | "title" | "state">)
);

export interface Batch {
  action: "run" | "stop" | "force-stop";
  mode?: "single" | "loop";
  reason?: string;
  /** Seconds that a force-stop waits for its proof. */
  wait?: number;
}

export class Projects {
  readonly #speaking: Speaking;

  constructor(speaking: Speaking) {
    this.#speaking = speaking;
  }

  /** It is safe to lose the answer: the repeated request finds the project that the first one made. */
  async create(
    project: NewProject,
    { idempotencyKey = crypto.randomUUID() }: { idempotencyKey?: string } = {},
  ): Promise<Project> {
    const asked = json("POST", project, { "Idempotency-Key": idempotencyKey });
    return (await this.#speaking.patiently("/api/v1/projects", asked)) as Project;
  }

  async list(
    which: { state?: QueueState[]; archived?: boolean; q?: string; cursor?: string; limit?: number } = {},
  ): Promise<Page<Project>> {
    return (await this.#speaking.patiently(`/api/v1/projects${queryOf(which)}`, {})) as Page<Project>;
  }

  async get(projectId: string): Promise<Project> {
    return (await this.#speaking.patiently(at(projectId), {})) as Project;
  }

  async change(projectId: string, change: Partial<NewProject>): Promise<Project> {
    return (await this.#speaking.once(at(projectId), json("PATCH", change))) as Project;
  }

  async archive(projectId: string, { reason }: { reason?: string } = {}): Promise<Project> {
    return (await this.#speaking.patiently(at(projectId, "", { reason }), json("DELETE"))) as Project;
  }

  async addItems(projectId: string, items: NewItem[]): Promise<Item[]> {
    const added = await this.#speaking.once(at(projectId, "/items"), json("POST", { items }));
    return (added as { items: Item[] }).items;
  }

  async items(
    projectId: string,
    which: { state?: ItemState[]; cursor?: string; limit?: number } = {},
  ): Promise<Page<Item>> {
    return (await this.#speaking.patiently(at(projectId, "/items", which), {})) as Page<Item>;
  }

  /** Moves it (`before` or `after` another), or changes its fields. */
  async changeItem(projectId: string, itemId: string, change: ItemChange): Promise<Item> {
    return (await this.#speaking.once(at(projectId, `/items/${itemId}`), json("PATCH", change))) as Item;
  }

  async skipItem(projectId: string, itemId: string): Promise<Item> {
    return (await this.#speaking.patiently(at(projectId, `/items/${itemId}/skip`), json("POST"))) as Item;
  }

  async requeueItem(projectId: string, itemId: string): Promise<Item> {
    return (await this.#speaking.once(at(projectId, `/items/${itemId}/requeue`), json("POST"))) as Item;
  }

  async deleteItem(projectId: string, itemId: string): Promise<void> {
    await this.#speaking.once(at(projectId, `/items/${itemId}`), json("DELETE"));
  }

  async runs(projectId: string, which: { cursor?: string; limit?: number } = {}): Promise<Page<Run>> {
    return (await this.#speaking.patiently(at(projectId, "/runs", which), {})) as Page<Run>;
  }

  async status(projectId: string): Promise<ProjectQueue> {
    return (await this.#speaking.patiently(at(projectId, "/queue/status"), {})) as ProjectQueue;
  }

  /** Asked once: a repeated call would be refused by the run that the first one has started. */
  async run(
    projectId: string,
    how: { mode?: "single" | "loop"; item_id?: string; reason?: string } = {},
  ): Promise<ProjectQueue> {
    return (await this.#speaking.once(at(projectId, "/run"), json("POST", how))) as ProjectQueue;
  }

  /** Asked until it is answered: to stop twice is to stop once. */
  async stop(projectId: string, why: { reason?: string } = {}): Promise<ProjectQueue> {
    return (await this.#speaking.patiently(at(projectId, "/queue/stop"), json("POST", why))) as ProjectQueue;
  }

  /** `success` only with proof; else `still_running` says what is not proven to be dead, and one may ask again. */
  async forceStop(projectId: string, { wait, reason }: { wait?: number; reason?: string } = {}): Promise<ForceStopped> {
    const path = at(projectId, "/queue/force-stop", { wait });
    return (await this.#speaking.patiently(path, json("POST", { reason }))) as ForceStopped;
  }

  /** Each project has an answer of its own. */
  async batch(projectIds: readonly string[], { wait, ...what }: Batch): Promise<BatchAnswer[]> {
    const asked = json("POST", { ...what, project_ids: projectIds });
    const path = `/api/v1/projects/batch${queryOf({ wait })}`;
    const answered = await (what.action === "run"
      ? this.#speaking.once(path, asked)
      : this.#speaking.patiently(path, asked));
    return (answered as { items: BatchAnswer[] }).items;
  }

  /** How the queue stands, and then everything that happens to it, each once, until the signal aborts. */
  async *stream(projectId: string, options: Resuming = {}): AsyncGenerator<QueueEvent> {
    const connect = this.#speaking.connect(at(projectId, "/queue/stream"));
    for await (const { id, event, data } of resuming(connect, () => false, options))
      yield { ...JSON.parse(data), event, seq: Number(id) } as QueueEvent;
  }
}

function at(projectId: string, below = "", query: Query = {}): string {
  return `/api/v1/projects/${encodeURIComponent(projectId)}${below}${queryOf(query)}`;
}
