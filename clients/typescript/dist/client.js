/** Windlass from TypeScript: submit, read, and streams that a lost connection cannot cut short. */
import { Backoff, sleep } from "./backoff.js";
import { hasEnded, } from "./documents.js";
import { isPassing, Refused, refusal, TaskCancelled, TaskDead, Unreachable, WaitTimeout } from "./errors.js";
import { Memory } from "./memory.js";
import { Projects } from "./projects.js";
import { restOver } from "./rest.js";
import { Schedules } from "./schedules.js";
import { queryOf } from "./speaking.js";
import { resuming } from "./stream.js";
import { Webhooks } from "./webhooks.js";
import { Approvals, Workflows } from "./workflows.js";
/** The server holds an answer back for at most a minute; proxies in between often for less. */
const LONGEST_WAIT_MS = 50_000;
const EARLY_ANSWER_PAUSE_MS = 200;
const LAST = new Set(["complete", "error", "cancelled"]);
export class Windlass {
    /** Every call of the API, typed; a refusal is returned as `error`, not thrown. */
    rest;
    projects;
    workflows;
    approvals;
    schedules;
    webhooks;
    memory;
    #url;
    #options;
    constructor(options = {}) {
        this.#options = options;
        this.#url = (options.url ?? "").replace(/\/$/, "");
        this.rest = restOver((path, init) => this.#send(path, init));
        const speaking = {
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
    async createTask(task, { idempotencyKey = crypto.randomUUID(), wait = 0 } = {}) {
        const path = `/api/v1/tasks${wait ? `?wait=${wait}` : ""}`;
        const headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": idempotencyKey,
        };
        return (await this.#patiently(path, {
            method: "POST",
            headers,
            body: JSON.stringify(task),
        }));
    }
    async getTask(taskId, { wait = 0, signal } = {}) {
        const path = `/api/v1/tasks/${encodeURIComponent(taskId)}${wait ? `?wait=${wait}` : ""}`;
        return (await this.#patiently(path, signal ? { signal } : {}));
    }
    /** Submits a task and waits for its end: returns it with its result, or throws `TaskDead` or `TaskCancelled`. */
    async run(task, { idempotencyKey = crypto.randomUUID(), ...waiting } = {}) {
        const { task_id } = await this.createTask(task, { idempotencyKey });
        const ended = await this.wait(task_id, waiting);
        if (ended.status === "completed")
            return ended;
        if (ended.status === "dead")
            throw new TaskDead({ ...ended, status: ended.status });
        throw new TaskCancelled({ ...ended, status: ended.status });
    }
    /** Waits for a task's end, whichever: `status` says whether there is a result. */
    async wait(taskId, { timeoutMs = Infinity, signal } = {}) {
        const until = Date.now() + timeoutMs;
        while (true) {
            const askedAt = Date.now();
            const wantedMs = Math.min(Math.max(until - askedAt, 0), LONGEST_WAIT_MS);
            const task = await this.getTask(taskId, { wait: wantedMs / 1000, signal });
            if (hasEnded(task))
                return task;
            if (Date.now() >= until)
                throw new WaitTimeout(task, timeoutMs);
            // An api that shuts down answers early.
            if (Date.now() - askedAt < wantedMs / 2)
                await sleep(EARLY_ANSWER_PAUSE_MS, signal);
        }
    }
    /** A task's story from its first event (or after a `seq`) to its end, each event once. */
    async *streamTask(taskId, options = {}) {
        const path = `/api/v1/tasks/${encodeURIComponent(taskId)}/stream`;
        for await (const { id, event, data } of resuming(this.#connect(path, taskId), ({ event }) => LAST.has(event), options))
            yield {
                ...JSON.parse(data),
                type: event,
                seq: Number(id),
            };
    }
    /** What happens to many tasks from now on (or after a cursor), until the signal aborts. */
    async *liveTasks(which = {}, options = {}) {
        const query = new URLSearchParams();
        for (const [name, value] of Object.entries(which))
            for (const each of Array.isArray(value) ? value : [value])
                if (each)
                    query.append(name, each);
        const path = `/api/v1/stream${query.size ? `?${query}` : ""}`;
        for await (const { id, event, data } of resuming(this.#connect(path), () => false, options))
            yield { ...JSON.parse(data), type: event, cursor: id };
    }
    /** What became of each day's tasks and what they cost, the latest day first. */
    async stats(which = {}) {
        return (await this.#patiently(pathOfStats(which), {})).items;
    }
    /** The same as a table; its first line names the columns. */
    async statsCsv(which = {}) {
        return this.text(pathOfStats(which), { accept: "text/csv" });
    }
    /** The text of an answer as it was sent: big numbers survive that `JSON.parse` would round. */
    async text(path, { accept = "*/*" } = {}) {
        const answer = await this.#send(path, { headers: { Accept: accept } });
        if (!answer.ok)
            throw await refusal(answer);
        return answer.text();
    }
    #connect(path, taskId) {
        const { streamToken } = this.#options;
        let token;
        const once = async (after, signal) => {
            const url = new URL(this.#absolute(path));
            const headers = this.#headers({ Accept: "text/event-stream" });
            if (after)
                headers.set("Last-Event-ID", after);
            if (taskId && streamToken)
                url.searchParams.set("token", (token ??= await streamToken(taskId)));
            return this.#fetch(new Request(url, { headers, ...(signal ? { signal } : {}) }));
        };
        return async (after, signal) => {
            const answer = await once(after, signal);
            if (answer.status !== 401 || token === undefined)
                return answer;
            token = undefined; // it has run out while the task went on: a new one goes on where this one stopped
            return once(after, signal);
        };
    }
    async #patiently(path, init) {
        const until = Date.now() + (this.#options.patienceMs ?? 30_000);
        const backoff = new Backoff();
        while (true) {
            try {
                return await this.#json(path, init);
            }
            catch (error) {
                const pause = backoff.pause(error instanceof Refused ? (error.retryAfter ?? 0) * 1000 : 0);
                if (!isPassing(error) || Date.now() + pause > until)
                    throw error;
                await sleep(pause, init.signal ?? undefined);
            }
        }
    }
    async #json(path, init) {
        const answer = await this.#send(path, init);
        if (!answer.ok)
            throw await refusal(answer);
        return answer.status === 204 ? undefined : answer.json();
    }
    async #send(path, init) {
        const request = new Request(this.#absolute(path), { ...init, headers: this.#headers(init.headers) });
        try {
            return await this.#fetch(request);
        }
        catch (error) {
            init.signal?.throwIfAborted();
            throw new Unreachable(error);
        }
    }
    #fetch(request) {
        return (this.#options.fetch ?? fetch)(request);
    }
    #absolute(path) {
        return this.#url ? this.#url + path : new URL(path, globalThis.location?.href).href;
    }
    #headers(more) {
        const headers = new Headers(more);
        if (this.#options.key)
            headers.set("Authorization", `Bearer ${this.#options.key}`);
        return headers;
    }
}
function pathOfStats({ group_by, ...days }) {
    return `/api/v1/stats${queryOf({ ...days, group_by: group_by?.join() })}`;
}
