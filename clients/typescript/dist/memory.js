/** Memory: what agents did, found again; the models that it is compared by, and the jobs that bring their vectors. */
import { json, queryOf } from "./speaking.js";
export class Memory {
    #speaking;
    constructor(speaking) {
        this.#speaking = speaking;
    }
    /** The nearest first. `degraded` says that no vector for the question came in time: words alone were compared. */
    async search(question) {
        return (await this.#speaking.patiently("/api/v1/memory/search", json("POST", question)));
    }
    /** What agents did, newest first. */
    async events(which = {}) {
        return (await this.#speaking.patiently(`/api/v1/agent-events${queryOf({ ...which })}`, {}));
    }
    async event(eventId) {
        return (await this.#speaking.patiently(of("agent-events", eventId), {}));
    }
    /** Takes it out, with its vectors; the task and its history stay. */
    async forget(eventId) {
        await this.#speaking.once(of("agent-events", eventId), json("DELETE"));
    }
    async models() {
        return (await this.#speaking.patiently("/api/v1/embedding-models", {})).items;
    }
    /** New events get its vectors from now on, and those that are there by and by. */
    async addModel(model) {
        return (await this.#speaking.once("/api/v1/embedding-models", json("POST", model)));
    }
    /** From here on questions are asked in its vectors. */
    async activateModel(modelId) {
        const path = of("embedding-models", modelId, "/activate");
        return (await this.#speaking.patiently(path, json("POST")));
    }
    /** With all its vectors; not the active one. */
    async deleteModel(modelId) {
        await this.#speaking.once(of("embedding-models", modelId), json("DELETE"));
    }
    async jobs(which = {}) {
        return (await this.#speaking.patiently(`/api/v1/embedding-jobs${queryOf(which)}`, {}));
    }
    /** Gives a failed one's task a new life. */
    async retryJob(jobId) {
        return (await this.#speaking.once(of("embedding-jobs", jobId, "/retry"), json("POST")));
    }
}
function of(kind, id, below = "") {
    return `/api/v1/${kind}/${encodeURIComponent(id)}${below}`;
}
