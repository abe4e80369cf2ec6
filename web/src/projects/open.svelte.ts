/** One project that is looked at: its queue, its backlog and its runs, kept true until one looks away. */

import { ask, rest } from "../api.ts";
import { isPassing, type Item, type ItemState, type Project, type QueueEvent, type Run } from "../client.ts";
import { followProject, listen } from "../live/live.svelte.ts";
import { withStatus } from "./queue.ts";

/** A burst is read once. */
const SETTLE_MS = 120;
/** Where nobody tells of the queue itself, and once in a while where somebody does. */
const OFTEN_MS = 1500;
const SELDOM_MS = 15_000;
const PAGE = 50;
export const RUNS = 200;

export class OpenProject {
  project = $state.raw<Project | undefined>();
  items = $state.raw<Item[] | undefined>();
  hasMoreItems = $state(false);
  runs = $state.raw<Run[] | undefined>();
  hasMoreRuns = $state(false);
  trouble = $state.raw<unknown>();
  readonly #projectId: string;
  readonly #states: () => ItemState[];
  #shown = PAGE;
  #isFollowed = false;
  #unfollow: (() => void) | undefined;
  /** What was told or answered of the queue so far: what was asked before knows less. */
  #told = 0;
  #due = Infinity;
  #soon: ReturnType<typeof setTimeout> | undefined;
  #reading: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(projectId: string, states: () => ItemState[]) {
    this.#projectId = projectId;
    this.#states = states;
  }

  /** Returns how to stop. */
  open(): () => void {
    const stopListening = listen({
      queue: (projectId, event) => projectId === this.#projectId && this.#hear(event),
      following: (_, projectId) => {
        this.#isFollowed = projectId === this.#projectId;
        this.soon(SETTLE_MS);
      },
      // A claim writes nothing but its task: that an item runs is told by nobody else.
      event: (event) => {
        if (event.type === "resync" || event.type === "output" || event.type === "step") return;
        if (event.task_id === this.project?.queue.current_task_id) this.soon(SETTLE_MS);
        else if (!this.#isFollowed) this.soon(OFTEN_MS);
      },
      reload: () => this.soon(SETTLE_MS),
    });
    const timer = setInterval(() => {
      const stopping = this.project?.queue.state === "stopping";
      if (document.visibilityState === "visible") this.soon(stopping ? SETTLE_MS : SELDOM_MS);
    }, OFTEN_MS);
    void this.read();
    return () => {
      this.#closed = true;
      stopListening();
      this.#unfollow?.();
      clearInterval(timer);
      clearTimeout(this.#soon);
    };
  }

  /** One reading after another: two at once could put an older answer over a newer one. */
  read(): Promise<void> {
    return (this.#reading = this.#reading.then(() => this.#readAll()));
  }

  async moreItems(): Promise<void> {
    this.#shown += 4 * PAGE;
    await this.read();
  }

  /** Something was asked for and answered: that is newer than whatever is being read. */
  answered(queue: Project["queue"]): void {
    this.#told += 1;
    if (this.project) this.project = { ...this.project, queue };
    this.soon(SETTLE_MS);
  }

  /** Reads after so long, or before, if that was wanted already. */
  soon(milliseconds: number): void {
    const due = Date.now() + milliseconds;
    if (this.#closed || due >= this.#due) return;
    this.#due = due;
    clearTimeout(this.#soon);
    this.#soon = setTimeout(() => {
      this.#due = Infinity;
      void this.read();
    }, milliseconds);
  }

  #hear(event: QueueEvent): void {
    if (event.event === "status" && this.project) {
      this.#told += 1;
      this.project = { ...this.project, queue: withStatus(this.project.queue, event) };
    }
    this.soon(SETTLE_MS);
  }

  async #readAll(): Promise<void> {
    if (this.#closed) return;
    const told = this.#told;
    const path = { project_id: this.#projectId };
    try {
      const [project, items, runs] = await Promise.all([
        ask(rest.GET("/api/v1/projects/{project_id}", { params: { path } })),
        this.#readItems(),
        ask(rest.GET("/api/v1/projects/{project_id}/runs", { params: { path, query: { limit: RUNS } } })),
      ]);
      const isOld = told !== this.#told && this.project;
      this.project = isOld ? { ...project, queue: this.project!.queue } : project;
      this.items = items.items;
      this.hasMoreItems = Boolean(items.next_cursor);
      this.runs = runs.items;
      this.hasMoreRuns = Boolean(runs.next_cursor);
      this.trouble = undefined;
      // Only what is known to be there: a stream of something else would be refused again and again.
      if (!this.#closed) this.#unfollow ??= followProject(this.#projectId);
    } catch (error) {
      if (!(this.project && isPassing(error))) this.trouble = error;
      else this.soon(OFTEN_MS);
    }
  }

  async #readItems(): Promise<{ items: Item[]; next_cursor?: string | null }> {
    const items: Item[] = [];
    let cursor: string | null | undefined;
    do {
      const which = { state: this.#states(), limit: Math.min(500, this.#shown - items.length) };
      const params = { path: { project_id: this.#projectId }, query: cursor ? { ...which, cursor } : which };
      const page = await ask(rest.GET("/api/v1/projects/{project_id}/items", { params }));
      items.push(...page.items);
      cursor = page.next_cursor;
    } while (cursor && items.length < this.#shown);
    return { items, next_cursor: cursor ?? null };
  }
}
