/** One workflow that is looked at, kept true by what every tab is told anyway: the changes of its tasks. */

import { ask, rest } from "../api.ts";
import { isPassing, type Workflow } from "../client.ts";
import { listen } from "../live/live.svelte.ts";

/** A burst is read once, and a large graph less often. */
const SETTLE_MS = 120;
const OFTEN_MS = 1500;
const SELDOM_MS = 10_000;
const LARGE = 200;

export class OpenWorkflow {
  workflow = $state.raw<Workflow | undefined>();
  trouble = $state.raw<unknown>();
  readonly #workflowId: string;
  #tasks = new Set<string>();
  /** What was answered so far to something that was asked for: what was read before knows less. */
  #answers = 0;
  #due = Infinity;
  #soon: ReturnType<typeof setTimeout> | undefined;
  #reading: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(workflowId: string) {
    this.#workflowId = workflowId;
  }

  /** Returns how to stop. */
  open(): () => void {
    const stopListening = listen({
      event: (event) => {
        if (event.type === "resync" || event.type === "output" || event.type === "step") return;
        if (this.#tasks.has(event.task_id)) this.#soonIn(this.#tasks.size > LARGE ? OFTEN_MS : SETTLE_MS);
        // It may be one of a `for_each`, or one that has joined: nobody says of which workflow it is.
        else if (!this.workflow?.completed_at) this.#soonIn(OFTEN_MS);
      },
      reload: () => this.#soonIn(SETTLE_MS),
    });
    const timer = setInterval(() => document.visibilityState === "visible" && this.#soonIn(SETTLE_MS), SELDOM_MS);
    void this.read();
    return () => {
      this.#closed = true;
      stopListening();
      clearInterval(timer);
      clearTimeout(this.#soon);
    };
  }

  /** One reading after another: two at once could put an older answer over a newer one. */
  read(): Promise<void> {
    return (this.#reading = this.#reading.then(() => this.#readIt()));
  }

  /** Something was asked for and answered: that is newer than whatever is being read. */
  answered(workflow: Workflow): void {
    this.#answers += 1;
    this.#take(workflow);
    this.#soonIn(SETTLE_MS);
  }

  #soonIn(milliseconds: number): void {
    const due = Date.now() + milliseconds;
    if (this.#closed || due >= this.#due) return;
    this.#due = due;
    clearTimeout(this.#soon);
    this.#soon = setTimeout(() => {
      this.#due = Infinity;
      void this.read();
    }, milliseconds);
  }

  async #readIt(): Promise<void> {
    if (this.#closed) return;
    const answers = this.#answers;
    try {
      const workflow = await ask(
        rest.GET("/api/v1/workflows/{workflow_id}", { params: { path: { workflow_id: this.#workflowId } } }),
      );
      if (answers === this.#answers) this.#take(workflow);
      this.trouble = undefined;
    } catch (error) {
      if (!(this.workflow && isPassing(error))) this.trouble = error;
      else this.#soonIn(OFTEN_MS);
    }
  }

  #take(workflow: Workflow): void {
    this.workflow = workflow;
    const ids = workflow.nodes.flatMap(({ task_id, children }) => [
      task_id,
      ...(children ?? []).map((each) => each.task_id),
    ]);
    this.#tasks = new Set(ids.filter((each): each is string => each !== null));
  }
}
