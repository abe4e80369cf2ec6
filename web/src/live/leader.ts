/** Without a shared worker: one tab, chosen by a lock, holds the connections for all, and another takes over when it goes. */

import { madeUp } from "../words/ids.ts";
import type { FromTab, ToTab } from "./messages.ts";

/** What tabs say to each other; everybody hears everything and takes what is theirs. */
type Word =
  | { to: "leader"; tab: string; message: FromTab | { say: "join" } }
  | { to: "tab"; tab: string; message: ToTab }
  | { to: "everybody"; say: "I lead" };

export interface Board {
  join(tab: unknown, send: (message: ToTab) => void): void;
  hear(tab: unknown, message: FromTab): void;
  close(): void;
}

export interface Surroundings {
  channel: Pick<BroadcastChannel, "postMessage" | "onmessage" | "close">;
  locks: Pick<LockManager, "request">;
  board: (options: { missed: boolean }) => Board;
}

export class Elected {
  readonly #tab: string;
  readonly #name: string;
  readonly #around: Surroundings;
  readonly #hear: (message: ToTab) => void;
  readonly #gone = new AbortController();
  #leads: Board | undefined;
  /** What the next leader has to be told of this tab. */
  #said: { open?: FromTab; visible?: FromTab } = {};
  #hasHeard = false;

  constructor(name: string, around: Surroundings, hear: (message: ToTab) => void, tab: string = madeUp()) {
    this.#name = name;
    this.#around = around;
    this.#tab = tab;
    this.#hear = (message) => {
      this.#hasHeard = true;
      hear(message);
    };
    around.channel.onmessage = ({ data }: MessageEvent<Word>) => this.#take(data);
    // Held as long as this tab lives: whoever gets it knows that the tab is gone, however it went.
    this.#hold(this.#ownLock(tab), () => this.#introduce());
    this.#hold(`${name}-leader`, () => this.#lead());
  }

  say(message: FromTab): void {
    if (message.say === "open" || message.say === "visible") this.#said[message.say] = message;
    if (message.say === "goodbye") this.#leave();
    else if (this.#leads) this.#leads.hear(this.#tab, message);
    else this.#post({ to: "leader", tab: this.#tab, message });
  }

  #lead(): void {
    const board = (this.#leads = this.#around.board({ missed: this.#hasHeard }));
    board.join(this.#tab, this.#hear);
    for (const message of Object.values(this.#said)) board.hear(this.#tab, message);
    this.#post({ to: "everybody", say: "I lead" });
  }

  #introduce(): void {
    if (this.#leads) return;
    this.#post({ to: "leader", tab: this.#tab, message: { say: "join" } });
    for (const message of Object.values(this.#said)) this.#post({ to: "leader", tab: this.#tab, message });
  }

  #take(word: Word): void {
    if (word.to === "everybody") this.#introduce();
    else if (word.to === "tab" && word.tab === this.#tab) this.#hear(word.message);
    else if (word.to === "leader" && this.#leads) this.#listenTo(word.tab, word.message);
  }

  #listenTo(tab: string, message: FromTab | { say: "join" }): void {
    const board = this.#leads!;
    if (message.say !== "join") return board.hear(tab, message);
    board.join(tab, (answer) => this.#post({ to: "tab", tab, message: answer }));
    void this.#around.locks
      .request(this.#ownLock(tab), { signal: this.#gone.signal }, () => board.hear(tab, { say: "goodbye" }))
      .catch(() => undefined);
  }

  #leave(): void {
    this.#gone.abort();
    this.#leads?.close();
    this.#around.channel.close();
  }

  #hold(lock: string, held: () => void): void {
    const { signal } = this.#gone;
    void this.#around.locks
      .request(lock, { signal }, () => {
        held();
        return new Promise<void>((leave) => signal.addEventListener("abort", () => leave()));
      })
      .catch(() => undefined);
  }

  #ownLock(tab: string): string {
    return `${this.#name}-tab-${tab}`;
  }

  #post(word: Word): void {
    if (!this.#gone.signal.aborted) this.#around.channel.postMessage(word);
  }
}
