/** The tasks of one run, kept true: what is still being made is found again by the run's name. */

import { ask, rest } from "../api.ts";
import { hasEnded, isPassing, type ListedTask, type LiveEvent } from "../client.ts";
import { listen } from "../live/live.svelte.ts";
import { type Rows, revealed, rowsOf, withChanges, withFirstPage } from "../live/rows.ts";

const MOST = 200;
/** What another tab has begun in this run is noticed so late, at most. */
const LOOK_MS = 4000;

export class Run {
  rows = $state.raw<Rows>(rowsOf([]));
  loaded = $state(false);
  trouble = $state.raw<unknown>();
  readonly #runId: string;
  #soon: ReturnType<typeof setTimeout> | undefined;
  #turn = 0;

  constructor(runId: string) {
    this.#runId = runId;
  }

  /** Returns how to stop. */
  open(): () => void {
    const stop = listen({ event: (event) => this.#hear(event), reload: () => void this.read() });
    const timer = setInterval(() => this.#mayHaveMore() && void this.read(), LOOK_MS);
    void this.read();
    return () => {
      stop();
      clearInterval(timer);
      clearTimeout(this.#soon);
      this.#turn = -1;
    };
  }

  async read(): Promise<void> {
    const turn = ++this.#turn;
    try {
      const query = { workflow_run_id: this.#runId, actor: "media", full: true, limit: MOST };
      const page = await ask(rest.GET("/api/v1/tasks", { params: { query: query as object } }));
      if (turn !== this.#turn) return;
      const items = page.items as ListedTask[];
      this.rows = this.loaded ? revealed(withFirstPage(this.rows, items)) : rowsOf(items);
      this.loaded = true;
      this.trouble = undefined;
    } catch (error) {
      if (turn === this.#turn && !(this.loaded && isPassing(error))) this.trouble = error;
    }
  }

  #hear(event: LiveEvent): void {
    if (event.type === "resync" || !this.rows.shown.some((row) => row.task_id === event.task_id)) return;
    this.rows = withChanges(this.rows, [event]);
    // An end says what was made only to those who ask.
    if (event.type !== "progress" && event.type !== "output") this.#later();
  }

  #later(): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      void this.read();
    }, 80);
  }

  #mayHaveMore(): boolean {
    return document.visibilityState === "visible" && (!this.loaded || this.rows.shown.some((row) => !hasEnded(row)));
  }
}
