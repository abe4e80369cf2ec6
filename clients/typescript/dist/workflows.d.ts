/** Workflows: graphs of tasks; and the people who are asked before one of them starts. */
import type { Asked, ListedWorkflow, NewWorkflow, Progress, Resumption, State, Task, TaskError, Workflow, WorkflowStatus } from "./documents.ts";
import { type Page, type Speaking } from "./speaking.ts";
import { type Resuming } from "./stream.ts";
/** What becomes of a workflow: itself on every change, the last time by how it ended, and its tasks' progress. */
export type WorkflowEvent = {
    cursor: string;
} & (({
    event: "workflow" | "complete" | "error" | "cancelled";
} & Workflow) | {
    event: "progress";
    task_id: string;
    /** Null of a task that was added later. */
    key: string | null;
    seq: number;
    attempt: number;
    status: State;
    progress: Progress;
    error?: TaskError | null;
});
export interface WhichWorkflows {
    status?: WorkflowStatus[];
    name?: string;
    tag?: string[];
    user_id?: string;
    created_after?: string;
    created_before?: string;
    cursor?: string;
    limit?: number;
}
export declare class Workflows {
    #private;
    constructor(speaking: Speaking);
    /** All its tasks or none. It is safe to lose the answer: the repeated request finds what the first one made. */
    create(workflow: NewWorkflow, { idempotencyKey }?: {
        idempotencyKey?: string;
    }): Promise<Workflow>;
    list(which?: WhichWorkflows): Promise<Page<ListedWorkflow>>;
    /** With `wait` it is answered at its end, when it is escalated, or after so many seconds. */
    get(workflowId: string, { wait }?: {
        wait?: number;
    }): Promise<Workflow>;
    /** How it stands, and then everything until it has ended; an escalated one has not. */
    stream(workflowId: string, options?: Resuming): AsyncGenerator<WorkflowEvent>;
    /** Asked once: a repeated call would find that it is not escalated any more. */
    resume(workflowId: string, how?: {
        retry?: Resumption;
        reason?: string;
    }): Promise<Workflow>;
    /** Asked until it is answered: to cancel twice is to cancel once. */
    cancel(workflowId: string, why?: {
        reason?: string;
    }): Promise<Workflow>;
}
export declare class Approvals {
    #private;
    constructor(speaking: Speaking);
    /** What waits for a word, the oldest task first. */
    list(which?: {
        cursor?: string;
        limit?: number;
    }): Promise<Page<Asked>>;
    /** Lets it start. Decided once: whoever comes second is refused with `already-decided`. */
    approve(taskId: string, said?: {
        comment?: string;
    }): Promise<Task>;
    /** Cancels it, and what depends on it is buried. */
    reject(taskId: string, said?: {
        comment?: string;
    }): Promise<Task>;
}
