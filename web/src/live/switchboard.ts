/** At most two connections for any number of tabs: every task's changes of state, and all of the tasks that are open. */

import { type LiveEvent, Refused, Windlass } from "../client.ts";
import { type Connections, connecting, type Report, withoutStream, withReport } from "./connection.ts";
import type { FromTab, ToTab } from "./messages.ts";

const HIDDEN_MS = 60_000;

interface Tab {
  send: (message: ToTab) => void;
  taskIds: string[];
  visible: boolean;
}

export class Switchboard {
  readonly #windlass = new Windlass();
  readonly #tabs = new Map<unknown, Tab>();
  #connections: Connections = connecting(Date.now());
  #stops: Partial<Record<Report["stream"], AbortController>> = {};
  #cursors: Partial<Record<Report["stream"], string>> = {};
  #followed = "";
  /** Whether the API can leave output out of the stream of everything; one that cannot is asked without. */
  #thins = true;
  #asleep: ReturnType<typeof setTimeout> | undefined;

  join(tab: unknown, send: Tab["send"]): void {
    this.#tabs.set(tab, { send, taskIds: [], visible: true });
    send({ say: "connection", state: this.#connections.shown });
    this.#wake();
  }

  hear(tab: unknown, message: FromTab): void {
    const known = this.#tabs.get(tab);
    if (!known) return;
    if (message.say === "goodbye") this.#tabs.delete(tab);
    if (message.say === "open") known.taskIds = message.taskIds;
    if (message.say === "visible") known.visible = message.visible;
    if (message.say === "signed-in") this.#close();
    if ([...this.#tabs.values()].some((each) => each.visible)) this.#wake();
    else this.#asleep ??= setTimeout(() => this.#close(), HIDDEN_MS);
  }

  /** Makes what is missing; what runs goes on. A stream that was closed goes on at its cursor. */
  #wake(): void {
    clearTimeout(this.#asleep);
    this.#asleep = undefined;
    if (!this.#stops.state) void this.#follow("state", undefined);
    const wanted = [...new Set([...this.#tabs.values()].flatMap((tab) => tab.taskIds))].sort();
    if (wanted.join() === this.#followed) {
      if (wanted.length && this.#stops.open) this.#tell({ say: "following", taskIds: wanted });
      return;
    }
    this.#followed = wanted.join();
    this.#stop("open");
    if (wanted.length) void this.#follow("open", wanted);
    else {
      delete this.#cursors.open; // a place from long ago would be read on from there
      this.#shown(withoutStream(this.#connections, "open", Date.now()));
    }
  }

  async #follow(stream: Report["stream"], taskIds: string[] | undefined): Promise<void> {
    const stop = (this.#stops[stream] = new AbortController());
    const { signal } = stop;
    const after = this.#cursors[stream];
    const which = taskIds ? { task_id: taskIds } : this.#thins ? { only: "state" as const } : {};
    try {
      const events = this.#windlass.liveTasks(which, {
        after,
        signal,
        onPlace: (cursor) => {
          const isFirst = this.#cursors[stream] === undefined;
          this.#cursors[stream] = cursor;
          if (taskIds && isFirst) this.#tell({ say: "following", taskIds });
        },
        onConnection: (state, trouble) => {
          const word = state === "live" ? "live" : "resuming";
          this.#report({ stream, word, trouble: trouble instanceof Error ? trouble.message : "" });
          if (state === "live" && taskIds && after) this.#tell({ say: "following", taskIds });
        },
      });
      for await (const event of events) this.#pass(event, stream);
    } catch (error) {
      if (signal.aborted) return;
      this.#stop(stream);
      if (stream === "state" && this.#thins && error instanceof Refused && error.code === "unknown-parameter") {
        this.#thins = false;
        return this.#wake();
      }
      const signedOut = error instanceof Refused && error.status === 401;
      const trouble = error instanceof Error ? error.message : "";
      this.#report({ stream, word: signedOut ? "signed-out" : "resuming", trouble });
      if (signedOut) return;
      // The cursor means nothing to this server any more: begin now, and let everybody look again.
      delete this.#cursors[stream];
      this.#followed = stream === "open" ? "" : this.#followed;
      setTimeout(() => (this.#tell({ say: "reload" }), this.#wake()), 2000);
    }
  }

  #pass(event: LiveEvent, stream: Report["stream"]): void {
    this.#cursors[stream] = event.cursor;
    if (event.type === "resync") this.#tell({ say: "reload" });
    else this.#tell({ say: "event", event, stream });
  }

  #report(report: Report): void {
    this.#shown(withReport(this.#connections, report, Date.now()));
  }

  #shown(connections: Connections): void {
    this.#connections = connections;
    this.#tell({ say: "connection", state: connections.shown });
  }

  #tell(message: ToTab): void {
    for (const tab of this.#tabs.values()) tab.send(message);
  }

  #stop(stream: Report["stream"]): void {
    this.#stops[stream]?.abort();
    delete this.#stops[stream];
  }

  #close(): void {
    this.#asleep = undefined;
    this.#stop("state");
    this.#stop("open");
    this.#followed = "";
  }
}
