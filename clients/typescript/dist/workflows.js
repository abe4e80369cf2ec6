/** Workflows: graphs of tasks; and the people who are asked before one of them starts. */
import { json, queryOf } from "./speaking.js";
import { resuming } from "./stream.js";
const LAST = new Set(["complete", "error", "cancelled"]);
export class Workflows {
    #speaking;
    constructor(speaking) {
        this.#speaking = speaking;
    }
    /** All its tasks or none. It is safe to lose the answer: the repeated request finds what the first one made. */
    async create(workflow, { idempotencyKey = crypto.randomUUID() } = {}) {
        const asked = json("POST", workflow, { "Idempotency-Key": idempotencyKey });
        return (await this.#speaking.patiently("/api/v1/workflows", asked));
    }
    async list(which = {}) {
        return (await this.#speaking.patiently(`/api/v1/workflows${queryOf({ ...which })}`, {}));
    }
    /** With `wait` it is answered at its end, when it is escalated, or after so many seconds. */
    async get(workflowId, { wait } = {}) {
        return (await this.#speaking.patiently(at(workflowId) + queryOf({ wait }), {}));
    }
    /** How it stands, and then everything until it has ended; an escalated one has not. */
    async *stream(workflowId, options = {}) {
        const connect = this.#speaking.connect(at(workflowId, "/stream"));
        for await (const { id, event, data } of resuming(connect, ({ event }) => LAST.has(event), options))
            yield { ...JSON.parse(data), event, cursor: id };
    }
    /** Asked once: a repeated call would find that it is not escalated any more. */
    async resume(workflowId, how = {}) {
        return (await this.#speaking.once(at(workflowId, "/resume"), json("POST", how)));
    }
    /** Asked until it is answered: to cancel twice is to cancel once. */
    async cancel(workflowId, why = {}) {
        return (await this.#speaking.patiently(at(workflowId, "/cancel"), json("POST", why)));
    }
}
export class Approvals {
    #speaking;
    constructor(speaking) {
        this.#speaking = speaking;
    }
    /** What waits for a word, the oldest task first. */
    async list(which = {}) {
        return (await this.#speaking.patiently(`/api/v1/approvals${queryOf(which)}`, {}));
    }
    /** Lets it start. Decided once: whoever comes second is refused with `already-decided`. */
    async approve(taskId, said = {}) {
        return this.#decide(taskId, "approve", said);
    }
    /** Cancels it, and what depends on it is buried. */
    async reject(taskId, said = {}) {
        return this.#decide(taskId, "reject", said);
    }
    async #decide(taskId, verb, said) {
        const path = `/api/v1/tasks/${encodeURIComponent(taskId)}/${verb}`;
        return (await this.#speaking.once(path, json("POST", said)));
    }
}
function at(workflowId, below = "") {
    return `/api/v1/workflows/${encodeURIComponent(workflowId)}${below}`;
}
