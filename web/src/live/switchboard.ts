/** At most two connections for any number of tabs: every task's changes of state, and all of what is open. */

import { Refused, type Resuming, type Which, Windlass } from "../client.ts";
import { type Connections, connecting, type Report, withoutStream, withReport } from "./connection.ts";
import { kindOfLine, type Line, lineOf, nameOfLine } from "./line.ts";
import type { FromTab, ToTab } from "./messages.ts";

const HIDDEN_MS = 60_000;

interface Tab {
  send: (message: ToTab) => void;
  taskIds: string[];
  projectId: string | undefined;
  visible: boolean;
}

export class Switchboard {
  readonly #windlass = new Windlass();
  readonly #tabs = new Map<unknown, Tab>();
  #connections: Connections = connecting(Date.now());
  #stops: Partial<Record<Report["stream"], AbortController>> = {};
  #cursors: Partial<Record<Report["stream"], string>> = {};
  #followed = "";
  /** Which streams understand the place that the second one has reached. */
  #kind = "tasks";
  /** Whether somebody before this one may have heard what it has not. */
  #missed: boolean;
  #asleep: ReturnType<typeof setTimeout> | undefined;

  constructor({ missed = false } = {}) {
    this.#missed = missed;
  }

  join(tab: unknown, send: Tab["send"]): void {
    this.#tabs.set(tab, { send, taskIds: [], projectId: undefined, visible: true });
    send({ say: "connection", state: this.#connections.shown });
    this.#wake();
  }

  hear(tab: unknown, message: FromTab): void {
    const known = this.#tabs.get(tab);
    if (!known) return;
    if (message.say === "goodbye") this.#tabs.delete(tab);
    if (message.say === "open") [known.taskIds, known.projectId] = [message.taskIds, message.projectId];
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
    const line = lineOf(this.#tabs.values());
    const wanted = nameOfLine(line);
    if (wanted === this.#followed) {
      if (line && this.#stops.open) this.#sayFollowing(line);
      return;
    }
    this.#followed = wanted;
    this.#stop("open");
    // A place from long ago would be read on from there, and one in another stream means nothing.
    if (!line || kindOfLine(line) !== this.#kind) delete this.#cursors.open;
    this.#kind = kindOfLine(line);
    if (line) void this.#follow("open", line);
    else this.#shown(withoutStream(this.#connections, "open", Date.now()));
  }

  async #follow(stream: Report["stream"], line: Line): Promise<void> {
    const stop = (this.#stops[stream] = new AbortController());
    const { signal } = stop;
    const after = this.#cursors[stream];
    const options: Resuming = {
      after,
      signal,
      onPlace: (cursor) => {
        if (signal.aborted) return; // another stream goes on where this one was
        const isFirst = this.#cursors[stream] === undefined;
        this.#cursors[stream] = cursor;
        if (line && isFirst) this.#sayFollowing(line);
      },
      onConnection: (state, trouble) => {
        const word = state === "live" ? "live" : "resuming";
        this.#report({ stream, word, trouble: trouble instanceof Error ? trouble.message : "" });
        if (state !== "live") return;
        if (line && after) this.#sayFollowing(line);
        if (!line && this.#missed) this.#tell({ say: "reload" });
        this.#missed &&= Boolean(line);
      },
    };
    try {
      if (line && "projectId" in line) await this.#passQueue(line.projectId, options);
      else await this.#passTasks(line ? { task_id: line.taskIds } : { only: "state" }, stream, options);
    } catch (error) {
      if (signal.aborted) return;
      this.#stop(stream);
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

  async #passTasks(which: Which, stream: Report["stream"], options: Resuming): Promise<void> {
    for await (const event of this.#windlass.liveTasks(which, options)) {
      if (!options.signal?.aborted) this.#cursors[stream] = event.cursor;
      if (event.type === "resync") this.#tell({ say: "reload" });
      else this.#tell({ say: "event", event, stream });
    }
  }

  async #passQueue(projectId: string, options: Resuming): Promise<void> {
    for await (const event of this.#windlass.projects.stream(projectId, options)) {
      this.#tell({ say: "queue", projectId, event });
    }
  }

  #sayFollowing(line: NonNullable<Line>): void {
    this.#tell({ say: "following", taskIds: [], ...line });
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

  /** Nobody listens any more, or everybody hides. */
  close(): void {
    this.#close();
    this.#tabs.clear();
  }

  #close(): void {
    clearTimeout(this.#asleep);
    this.#asleep = undefined;
    this.#stop("state");
    this.#stop("open");
    this.#followed = "";
  }
}
