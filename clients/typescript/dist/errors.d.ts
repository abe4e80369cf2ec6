/** The errors of the client: a refusal, no answer, and a task that ended without a result or too late. */
import type { EndedTask, FieldError, Problem, Task } from "./documents.ts";
/** The API refused the request: `problem` is its problem+json. */
export declare class Refused extends Error {
    readonly status: number;
    readonly problem: Partial<Problem>;
    /** Seconds, where the answer named a time to come back. */
    readonly retryAfter: number | undefined;
    constructor(status: number, problem: Partial<Problem>, retryAfter?: number);
    get code(): string;
    /** The fields that failed a check, each named by a JSON pointer; empty if the refusal is about something else. */
    get errors(): readonly FieldError[];
}
/** The API did not answer. */
export declare class Unreachable extends Error {
    constructor(cause: unknown);
}
/** The task of a `run` ended without a result: it is dead. */
export declare class TaskDead extends Error {
    readonly task: EndedTask & {
        status: "dead";
    };
    constructor(task: EndedTask & {
        status: "dead";
    });
}
/** The task of a `run` ended without a result: it was cancelled. */
export declare class TaskCancelled extends Error {
    readonly task: EndedTask & {
        status: "cancelled";
    };
    constructor(task: EndedTask & {
        status: "cancelled";
    });
}
/** The task had not ended after `timeoutMs`. It continues: `task` is its state at that moment. */
export declare class WaitTimeout extends Error {
    readonly task: Task;
    constructor(task: Task, timeoutMs: number);
}
export declare function refusal(answer: Response): Promise<Refused>;
export declare function problemIn(text: string): Partial<Problem>;
/** Whether the same request may succeed later: the API does not answer, or cannot serve the request now. */
export declare function isPassing(trouble: unknown): boolean;
