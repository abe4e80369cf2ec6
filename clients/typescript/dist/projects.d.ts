/** Projects: a backlog, and a run queue that can be stopped. */
import type { BatchAnswer, ForceStopped, Item, ItemChange, ItemState, NewItem, NewProject, Project, ProjectQueue, QueueState, Run } from "./documents.ts";
import { type Page, type Speaking } from "./speaking.ts";
import { type Resuming } from "./stream.ts";
/** What happens to a queue; `seq` is the place to resume from. A `status` without a `type` is how it stands now. */
export type QueueEvent = {
    seq: number;
} & (({
    event: "status";
    type?: string;
} & Omit<ProjectQueue, "elapsed_ms" | "still_running" | "open_jobs">) | ({
    event: "run";
    type: string;
} & Pick<Run, "run_id" | "item_id" | "task_id" | "mode" | "state" | "started_at"> & Partial<Pick<Run, "ended_at" | "error" | "revived_from">>) | ({
    event: "item";
    type: string;
} & Pick<Item, "item_id" | "position" | "title" | "state">));
export interface Batch {
    action: "run" | "stop" | "force-stop";
    mode?: "single" | "loop";
    reason?: string;
    /** Seconds that a force-stop waits for its proof. */
    wait?: number;
}
export declare class Projects {
    #private;
    constructor(speaking: Speaking);
    /** It is safe to lose the answer: the repeated request finds the project that the first one made. */
    create(project: NewProject, { idempotencyKey }?: {
        idempotencyKey?: string;
    }): Promise<Project>;
    list(which?: {
        state?: QueueState[];
        archived?: boolean;
        q?: string;
        cursor?: string;
        limit?: number;
    }): Promise<Page<Project>>;
    get(projectId: string): Promise<Project>;
    change(projectId: string, change: Partial<NewProject>): Promise<Project>;
    archive(projectId: string, { reason }?: {
        reason?: string;
    }): Promise<Project>;
    addItems(projectId: string, items: NewItem[]): Promise<Item[]>;
    items(projectId: string, which?: {
        state?: ItemState[];
        cursor?: string;
        limit?: number;
    }): Promise<Page<Item>>;
    /** Moves it (`before` or `after` another), or changes its fields. */
    changeItem(projectId: string, itemId: string, change: ItemChange): Promise<Item>;
    skipItem(projectId: string, itemId: string): Promise<Item>;
    requeueItem(projectId: string, itemId: string): Promise<Item>;
    deleteItem(projectId: string, itemId: string): Promise<void>;
    runs(projectId: string, which?: {
        cursor?: string;
        limit?: number;
    }): Promise<Page<Run>>;
    status(projectId: string): Promise<ProjectQueue>;
    /** Asked once: a repeated call would be refused by the run that the first one has started. */
    run(projectId: string, how?: {
        mode?: "single" | "loop";
        item_id?: string;
        reason?: string;
    }): Promise<ProjectQueue>;
    /** Asked until it is answered: to stop twice is to stop once. */
    stop(projectId: string, why?: {
        reason?: string;
    }): Promise<ProjectQueue>;
    /** `success` only with proof; else `still_running` says what is not proven to be dead, and one may ask again. */
    forceStop(projectId: string, { wait, reason }?: {
        wait?: number;
        reason?: string;
    }): Promise<ForceStopped>;
    /** Each project has an answer of its own. */
    batch(projectIds: readonly string[], { wait, ...what }: Batch): Promise<BatchAnswer[]>;
    /** How the queue stands, and then everything that happens to it, each once, until the signal aborts. */
    stream(projectId: string, options?: Resuming): AsyncGenerator<QueueEvent>;
}
