/** One task that is looked at: its document, its whole story and its output, kept true until one looks away. */

import { ask, rest, windlass } from "../api.ts";
import { isPassing, type LiveEvent, type Task, type TaskEvent } from "../client.ts";
import { membersOf } from "../words/raw_json.ts";
import { follow, listen } from "./live.svelte.ts";
import { EMPTY_STORY, type Story, withLive, withPage } from "./merge.ts";
import { NO_OUTPUT, type Output, withOutput } from "./output.ts";

const PAGE = 1000;
/** Everything but output, which is told live. */
const TOLD_BY_HISTORY = [
  ...["submit", "unblock", "claim", "complete", "retry", "bury", "stall", "interrupt", "cancel", "revive", "dispatch"],
  ...["progress", "step", "cancel-requested", "hold", "release", "ask", "approve", "reject", "recall"],
];

export class OpenTask {
  task = $state.raw<Task | undefined>();
  /** Its members as they were sent: big numbers survive. */
  raw = $state.raw<Record<string, string>>({});
  story = $state.raw<Story>(EMPTY_STORY);
  output = $state.raw<Output>(NO_OUTPUT);
  trouble = $state.raw<unknown>();
  readonly #taskId: string;
  #said: LiveEvent[] = [];
  #soon: ReturnType<typeof setTimeout> | undefined;
  #reading: Promise<void> = Promise.resolve();

  constructor(taskId: string) {
    this.#taskId = taskId;
  }

  /** Returns how to stop. The history is read at once, and read on from there once everything that comes is told. */
  open(): () => void {
    const stopListening = listen({
      event: (event) => event.type !== "resync" && event.task_id === this.#taskId && this.#hear(event),
      following: (taskIds) => taskIds.includes(this.#taskId) && this.#read(),
      reload: () => this.#read(),
    });
    const unfollow = follow(this.#taskId);
    this.#read();
    return () => {
      stopListening();
      unfollow();
      clearTimeout(this.#soon);
    };
  }

  /** Reads what is new, one reading after another: two at once could put an older document over a newer one. */
  #read(types?: string[]): void {
    this.#reading = this.#reading.then(async () => {
      try {
        await this.#readHistory(types);
        const text = await windlass.text(`/api/v1/tasks/${this.#taskId}`);
        this.task = JSON.parse(text) as Task;
        this.raw = membersOf(text);
        this.trouble = undefined;
      } catch (error) {
        if (!(this.task && isPassing(error))) this.trouble = error;
        else this.#later(() => this.#read(types), 2000);
      }
    });
  }

  async #readHistory(types: string[] | undefined): Promise<void> {
    for (let more = true; more;) {
      const after = types ? this.story.toldUpTo : this.story.readUpTo;
      const query = { after, limit: PAGE, ...(types ? { type: types } : {}) };
      const path = { task_id: this.#taskId };
      const page = await ask(rest.GET("/api/v1/tasks/{task_id}/events", { params: { path, query } }));
      this.#take(withPage(this.story, page.items, { whole: types === undefined }));
      more = page.items.length > 0 && Boolean(page.next_cursor);
    }
  }

  #hear(event: Exclude<LiveEvent, { type: "resync" }>): void {
    this.#said.push(event);
    if (
      event.type === "progress" &&
      this.task &&
      event.status === this.task.status &&
      event.attempt === this.task.attempt
    )
      this.task = { ...this.task, progress: event.progress };
    // A burst of output is one change of the page, not a thousand.
    this.#later(() => this.#settle(), 60);
  }

  #settle(): void {
    const said = this.#said.splice(0);
    this.#take(withLive(this.story, said, new Date().toISOString()));
    if (said.some((event) => event.type !== "output")) this.#read(TOLD_BY_HISTORY);
  }

  #later(act: () => void, milliseconds: number): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      act();
    }, milliseconds);
  }

  #take(story: Story): void {
    if (story === this.story) return;
    const isGap = this.#hasOlderOutput(story.events);
    this.output = withOutput(isGap ? NO_OUTPUT : this.output, story.events);
    this.story = story;
  }

  /** Whether output came that belongs before what is shown: then it is laid out anew. */
  #hasOlderOutput(events: readonly TaskEvent[]): boolean {
    const count = (all: readonly TaskEvent[]): number =>
      all.reduce((sum, { type, seq }) => sum + Number(type === "output" && seq <= this.output.upTo), 0);
    return this.output.upTo > 0 && count(events) !== count(this.story.events);
  }
}
