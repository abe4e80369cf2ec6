/** Windlass from TypeScript: submit, read, and streams that a lost connection cannot cut short. */
import { type CompletedTask, type DailyFigures, type EndedTask, type NewTask, type Progress, type Task, type TaskError } from "./documents.ts";
import { Memory } from "./memory.ts";
import { Projects } from "./projects.ts";
import { type Rest } from "./rest.ts";
import { Schedules } from "./schedules.ts";
import { type Resuming } from "./stream.ts";
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
export type StreamEvent = {
    seq: number;
    attempt: number;
} & ({
    type: "progress";
    status: Task["status"];
    progress: Progress;
    error?: TaskError | null;
} | {
    type: "output";
    text?: string;
    data?: unknown;
} | {
    type: "step";
    [name: string]: unknown;
} | {
    type: "complete";
    result: unknown;
} | {
    type: "error";
    error: TaskError;
} | {
    type: "cancelled";
});
/** The same for many; `resync` says: too much has happened to tell one by one, load what you show again. */
export type LiveEvent = {
    cursor: string;
} & (({
    task_id: string;
} & StreamEvent) | {
    type: "resync";
});
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
export declare class Windlass {
    #private;
    /** Every call of the API, typed; a refusal is returned as `error`, not thrown. */
    readonly rest: Rest;
    readonly projects: Projects;
    readonly workflows: Workflows;
    readonly approvals: Approvals;
    readonly schedules: Schedules;
    readonly webhooks: Webhooks;
    readonly memory: Memory;
    constructor(options?: Options);
    /** Stores a task. It is safe to lose the answer: the repeated request finds the task that the first one made. */
    createTask<R = unknown>(task: NewTask, { idempotencyKey, wait }?: {
        idempotencyKey?: string;
        wait?: number;
    }): Promise<Task<R>>;
    getTask<R = unknown>(taskId: string, { wait, signal }?: {
        wait?: number;
        signal?: AbortSignal | undefined;
    }): Promise<Task<R>>;
    /** Submits a task and waits for its end: returns it with its result, or throws `TaskDead` or `TaskCancelled`. */
    run<R = unknown>(task: NewTask, { idempotencyKey, ...waiting }?: Waiting & {
        idempotencyKey?: string;
    }): Promise<CompletedTask<R>>;
    /** Waits for a task's end, whichever: `status` says whether there is a result. */
    wait<R = unknown>(taskId: string, { timeoutMs, signal }?: Waiting): Promise<EndedTask<R>>;
    /** A task's story from its first event (or after a `seq`) to its end, each event once. */
    streamTask(taskId: string, options?: Resuming): AsyncGenerator<StreamEvent>;
    /** What happens to many tasks from now on (or after a cursor), until the signal aborts. */
    liveTasks(which?: Which, options?: Resuming): AsyncGenerator<LiveEvent>;
    /** What became of each day's tasks and what they cost, the latest day first. */
    stats(which?: WhichFigures): Promise<DailyFigures[]>;
    /** The same as a table; its first line names the columns. */
    statsCsv(which?: WhichFigures): Promise<string>;
    /** The text of an answer as it was sent: big numbers survive that `JSON.parse` would round. */
    text(path: string, { accept }?: {
        accept?: string | undefined;
    }): Promise<string>;
}
