/** Memory: what agents did, found again; the models that it is compared by, and the jobs that bring their vectors. */
import type { AgentEvent, EmbeddingJob, EmbeddingModel, Found, State } from "./documents.ts";
import { type Page, type Speaking } from "./speaking.ts";
export interface Question {
    q: string;
    limit?: number;
    project_id?: string;
    subagent_type?: string;
    created_after?: string;
}
export interface WhichEvents {
    task_id?: string;
    actor?: string;
    status?: Extract<State, "completed" | "dead" | "cancelled">;
    subagent_type?: string;
    project_id?: string;
    workflow_id?: string;
    user_id?: string;
    cursor?: string;
    limit?: number;
}
export declare class Memory {
    #private;
    constructor(speaking: Speaking);
    /** The nearest first. `degraded` says that no vector for the question came in time: words alone were compared. */
    search(question: Question): Promise<Found>;
    /** What agents did, newest first. */
    events(which?: WhichEvents): Promise<Page<AgentEvent>>;
    event(eventId: string): Promise<AgentEvent>;
    /** Takes it out, with its vectors; the task and its history stay. */
    forget(eventId: string): Promise<void>;
    models(): Promise<EmbeddingModel[]>;
    /** New events get its vectors from now on, and those that are there by and by. */
    addModel(model: {
        name: string;
        provider: string;
        dimensions: number;
    }): Promise<EmbeddingModel>;
    /** From here on questions are asked in its vectors. */
    activateModel(modelId: string): Promise<EmbeddingModel>;
    /** With all its vectors; not the active one. */
    deleteModel(modelId: string): Promise<void>;
    jobs(which?: {
        state?: EmbeddingJob["state"];
        cursor?: string;
        limit?: number;
    }): Promise<Page<EmbeddingJob>>;
    /** Gives a failed one's task a new life. */
    retryJob(jobId: string): Promise<EmbeddingJob>;
}
