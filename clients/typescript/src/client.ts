/** Windlass from TypeScript: submit, read, and streams that a lost connection cannot cut short. */

import { Backoff, sleep } from "./backoff.ts";
import {
  type CompletedTask,
  type DailyFigures,
  type EndedTask,
  hasEnded,
  type NewTask,
  type Progress,
  type Task,
  type TaskError,
} from "./documents.ts";
import { isPassing, Refused, refusal, TaskCancelled, TaskDead, Unreachable, WaitTimeout } from "./errors.ts";
import { Memory } from "./memory.ts";
import { Projects } from "./projects.ts";
import { type Rest, restOver } from "./rest.ts";
import { Schedules } from "./schedules.ts";
import { queryOf, type Speaking } from "./speaking.ts";
import { type Connect, type Resuming, resuming } from "./stream.ts";
import { Webhooks } from "./webhooks.ts";
import { Approvals, Workflows } from "./workflows.ts";

export interface Options {
  /** Where the API is: `https://windlass.example`. A page that it serves itself needs none. */
  url?: string;
  /** A key. Leave it out in browsers: a session cookie or a stream token goes instead. */
  key?: string;
  /** For streams on other origins: asks your own server for a stream token, and again when one has run out. */
  streamToken?: (taskId: string) => Promise<string>;
  /** For how long trouble that may pass is borne before it is thrown, in milliseconds. */
  patienceMs?: number;
  fetch?: typeof fetch;
}

/** What happens to one task; `seq` counts from 1 and is the place to resume from. */
export type StreamEvent = { seq: number; attempt: number } & (
  | {
      type: "progress";
      status: Task["status"];
      progress: Progress;
      error?: TaskError | null;
    }
  | { type: "output"; text?: string; data?: unknown }
  | { type: "step"; [name: string]: unknown }
  | { type: "complete"; result: unknown }
  | { type: "error"; error: TaskError }
  | { type: "cancelled" }
);

/** The same for many; `resync` says: too much has happened to tell one by one, load what you show again. */
export type LiveEvent = { cursor: string } & (({ task_id: string } & StreamEvent) | { type: "resync" });

export interface Which {
  task_id?: string[];
  project_id?: string;
  workflow_id?: string;
  user_id?: string;
  only?: "state";
}

export interface Waiting {
  /** For how long, in milliseconds; then `WaitTimeout` is thrown. Without it, for as long as the task takes. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** Which days, and what they are split by. */
export interface WhichFigures {
  from?: string;
  to?: string;
  /** Instead of `from`: so many days up to the last. */
  days?: number;
  group_by?: readonly ("actor" | "subagent_type" | "provider" | "user_id" | "project_id")[];
}

/** The server holds an answer back for at most a minute; proxies in between often for less. */
const LONGEST_WAIT_MS = 50_000;
const EARLY_ANSWER_PAUSE_MS = 200;

const LAST = new Set(["complete", "error", "cancelled"]);

export class Windlass {
  /** Every call of the API, typed; a refusal is returned as `error`, not thrown. */
  readonly rest: Rest;
  readonly projects: Projects;
  readonly workflows: Workflows;
  readonly approvals: Approvals;
  readonly schedules: Schedules;
  readonly webhooks: Webhooks;
  readonly memory: Memory;
  readonly #url: string;
  readonly #options: Options;

  constructor(options: Options = {}) {
    this.#options = options;
    this.#url = (options.url ?? "").replace(/\/$/, "");
    this.rest = restOver((path, init) => this.#send(path, init));
    const speaking: Speaking = {
      once: (path, init) => this.#json(path, init),
      patiently: (path, init) => this.#patiently(path, init),
      connect: (path) => this.#connect(path),
    };
    this.projects = new Projects(speaking);
    this.workflows = new Workflows(speaking);
    this.approvals = new Approvals(speaking);
    this.schedules = new Schedules(speaking);
    this.webhooks = new Webhooks(speaking);
    this.memory = new Memory(speaking);
  }

  /** Stores a task. It is safe to lose the answer: the repeated request finds the task that the first one made. */
  async createTask<R = unknown>(
    task: NewTask,
    { idempotencyKey = crypto.randomUUID(), wait = 0 }: { idempotencyKey?: string; wait?: number } = {},
  ): Promise<Task<R>> {
    const path = `/api/v1/tasks${wait ? `?wait=${wait}` : ""}`;
    const headers = {
      "Content-Type": "application/json",
      "Idempotency-Key": idempotencyKey,
    };
    return (await this.#patiently(path, {
      method: "POST",
      headers,
      body: JSON.stringify(task),
    })) as Task<R>;
  }

  async getTask<R = unknown>(
    taskId: string,
    { wait = 0, signal }: { wait?: number; signal?: AbortSignal | undefined } = {},
  ): Promise<Task<R>> {
    const path = `/api/v1/tasks/${encodeURIComponent(taskId)}${wait ? `?wait=${wait}` : ""}`;
    return (await this.#patiently(path, signal ? { signal } : {})) as Task<R>;
  }

  /** Submits a task and waits for its end: returns it with its result, or throws `TaskDead` or `TaskCancelled`. */
  async run<R = unknown>(
    task: NewTask,
    { idempotencyKey = crypto.randomUUID(), ...waiting }: Waiting & { idempotencyKey?: string } = {},
  ): Promise<CompletedTask<R>> {
    const { task_id } = await this.createTask(task, { idempotencyKey });
    const ended = await this.wait<R>(task_id, waiting);
    if (ended.status === "completed") return ended;
    if (ended.status === "dead") throw new TaskDead({ ...ended, status: ended.status });
    throw new TaskCancelled({ ...ended, status: ended.status });
  }

  /** Waits for a task's end, whichever: `status` says whether there is a result. */
  async wait<R = unknown>(taskId: string, { timeoutMs = Infinity, signal }: Waiting = {}): Promise<EndedTask<R>> {
    const until = Date.now() + timeoutMs;
    while (true) {
      const askedAt = Date.now();
      const wantedMs = Math.min(Math.max(until - askedAt, 0), LONGEST_WAIT_MS);
      const task = await this.getTask<R>(taskId, { wait: wantedMs / 1000, signal });
      if (hasEnded(task)) return task as EndedTask<R>;
      if (Date.now() >= until) throw new WaitTimeout(task, timeoutMs);
      // An api that shuts down answers early.
      if (Date.now() - askedAt < wantedMs / 2) await sleep(EARLY_ANSWER_PAUSE_MS, signal);
    }
  }

  /** A task's story from its first event (or after a `seq`) to its end, each event once. */
  async *streamTask(taskId: string, options: Resuming = {}): AsyncGenerator<StreamEvent> {
    const path = `/api/v1/tasks/${encodeURIComponent(taskId)}/stream`;
    for await (const { id, event, data } of resuming(
      this.#connect(path, taskId),
      ({ event }) => LAST.has(event),
      options,
    ))
      yield {
        ...JSON.parse(data),
        type: event,
        seq: Number(id),
      } as StreamEvent;
  }

  /** What happens to many tasks from now on (or after a cursor), until the signal aborts. */
  async *liveTasks(which: Which = {}, options: Resuming = {}): AsyncGenerator<LiveEvent> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(which))
      for (const each of Array.isArray(value) ? value : [value]) if (each) query.append(name, each);
    const path = `/api/v1/stream${query.size ? `?${query}` : ""}`;
    for await (const { id, event, data } of resuming(this.#connect(path), () => false, options))
      yield { ...JSON.parse(data), type: event, cursor: id } as LiveEvent;
  }

  /** What became of each day's tasks and what they cost, the latest day first. */
  async stats(which: WhichFigures = {}): Promise<DailyFigures[]> {
    return ((await this.#patiently(pathOfStats(which), {})) as { items: DailyFigures[] }).items;
  }

  /** The same as a table; its first line names the columns. */
  async statsCsv(which: WhichFigures = {}): Promise<string> {
    return this.text(pathOfStats(which), { accept: "text/csv" });
  }

  /** The text of an answer as it was sent: big numbers survive that `JSON.parse` would round. */
  async text(path: string, { accept = "*/*" } = {}): Promise<string> {
    const answer = await this.#send(path, { headers: { Accept: accept } });
    if (!answer.ok) throw await refusal(answer);
    return answer.text();
  }

  #connect(path: string, taskId?: string): Connect {
    const { streamToken } = this.#options;
    let token: string | undefined;
    const once = async (after: string, signal: AbortSignal | undefined): Promise<Response> => {
      const url = new URL(this.#absolute(path));
      const headers = this.#headers({ Accept: "text/event-stream" });
      if (after) headers.set("Last-Event-ID", after);
      if (taskId && streamToken) url.searchParams.set("token", (token ??= await streamToken(taskId)));
      return this.#fetch(new Request(url, { headers, ...(signal ? { signal } : {}) }));
    };
    return async (after, signal) => {
      const answer = await once(after, signal);
      if (answer.status !== 401 || token === undefined) return answer;
      token = undefined; // it has run out while the task went on: a new one goes on where this one stopped
      return once(after, signal);
    };
  }

  async #patiently(path: string, init: RequestInit): Promise<unknown> {
    const until = Date.now() + (this.#options.patienceMs ?? 30_000);
    const backoff = new Backoff();
    while (true) {
      try {
        return await this.#json(path, init);
      } catch (error) {
        const pause = backoff.pause(error instanceof Refused ? (error.retryAfter ?? 0) * 1000 : 0);
        if (!isPassing(error) || Date.now() + pause > until) throw error;
        await sleep(pause, init.signal ?? undefined);
      }
    }
  }

  async #json(path: string, init: RequestInit): Promise<unknown> {
    const answer = await this.#send(path, init);
    if (!answer.ok) throw await refusal(answer);
    return answer.status === 204 ? undefined : answer.json();
  }

  async #send(path: string, init: RequestInit): Promise<Response> {
    const request = new Request(this.#absolute(path), { ...init, headers: this.#headers(init.headers) });
    try {
      return await this.#fetch(request);
    } catch (error) {
      init.signal?.throwIfAborted();
      throw new Unreachable(error);
    }
  }

  #fetch(request: Request): Promise<Response> {
    return (this.#options.fetch ?? fetch)(request);
  }

  #absolute(path: string): string {
    return this.#url ? this.#url + path : new URL(path, globalThis.location?.href).href;
  }

  #headers(more: HeadersInit | undefined): Headers {
    const headers = new Headers(more);
    if (this.#options.key) headers.set("Authorization", `Bearer ${this.#options.key}`);
    return headers;
  }
}

function pathOfStats({ group_by, ...days }: WhichFigures): string {
  return `/api/v1/stats${queryOf({ ...days, group_by: group_by?.join() })}`;
}
