/** The errors of the client: a refusal, no answer, and a task that ended without a result or too late. */
/** The API refused the request: `problem` is its problem+json. */
export class Refused extends Error {
    status;
    problem;
    /** Seconds, where the answer named a time to come back. */
    retryAfter;
    constructor(status, problem, retryAfter) {
        super(problem.detail ?? problem.title ?? `the API answered ${status}`);
        this.name = "Refused";
        this.status = status;
        this.problem = problem;
        this.retryAfter = retryAfter;
    }
    get code() {
        return this.problem.code ?? String(this.status);
    }
    /** The fields that failed a check, each named by a JSON pointer; empty if the refusal is about something else. */
    get errors() {
        return this.problem.errors ?? [];
    }
}
/** The API did not answer. */
export class Unreachable extends Error {
    constructor(cause) {
        super("the API does not answer", { cause });
        this.name = "Unreachable";
    }
}
/** The task of a `run` ended without a result: it is dead. */
export class TaskDead extends Error {
    task;
    constructor(task) {
        const reason = task.error ? `${task.error.type}: ${task.error.message}` : "no error is known";
        super(`task ${task.task_id} is dead after attempt ${task.attempt}: ${reason}`);
        this.name = "TaskDead";
        this.task = task;
    }
}
/** The task of a `run` ended without a result: it was cancelled. */
export class TaskCancelled extends Error {
    task;
    constructor(task) {
        super(`task ${task.task_id} was cancelled`);
        this.name = "TaskCancelled";
        this.task = task;
    }
}
/** The task had not ended after `timeoutMs`. It continues: `task` is its state at that moment. */
export class WaitTimeout extends Error {
    task;
    constructor(task, timeoutMs) {
        super(`task ${task.task_id} is still ${task.status} after ${timeoutMs / 1000} s; it continues`);
        this.name = "WaitTimeout";
        this.task = task;
    }
}
export async function refusal(answer) {
    const text = await answer.text().catch(() => "");
    return new Refused(answer.status, problemIn(text), secondsIn(answer.headers.get("Retry-After")));
}
export function problemIn(text) {
    try {
        const document = JSON.parse(text);
        return typeof document === "object" && document !== null ? document : {};
    }
    catch {
        return text ? { detail: text.slice(0, 300) } : {};
    }
}
function secondsIn(header) {
    const seconds = Number(header ?? NaN);
    return Number.isFinite(seconds) ? seconds : undefined;
}
/** Whether the same request may succeed later: the API does not answer, or cannot serve the request now. */
export function isPassing(trouble) {
    return (trouble instanceof Unreachable || (trouble instanceof Refused && [429, 502, 503, 504].includes(trouble.status)));
}
