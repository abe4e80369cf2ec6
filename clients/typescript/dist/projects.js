/** Projects: a backlog, and a run queue that can be stopped. */
import { json, queryOf } from "./speaking.js";
import { resuming } from "./stream.js";
export class Projects {
    #speaking;
    constructor(speaking) {
        this.#speaking = speaking;
    }
    /** It is safe to lose the answer: the repeated request finds the project that the first one made. */
    async create(project, { idempotencyKey = crypto.randomUUID() } = {}) {
        const asked = json("POST", project, { "Idempotency-Key": idempotencyKey });
        return (await this.#speaking.patiently("/api/v1/projects", asked));
    }
    async list(which = {}) {
        return (await this.#speaking.patiently(`/api/v1/projects${queryOf(which)}`, {}));
    }
    async get(projectId) {
        return (await this.#speaking.patiently(at(projectId), {}));
    }
    async change(projectId, change) {
        return (await this.#speaking.once(at(projectId), json("PATCH", change)));
    }
    async archive(projectId, { reason } = {}) {
        return (await this.#speaking.patiently(at(projectId, "", { reason }), json("DELETE")));
    }
    async addItems(projectId, items) {
        const added = await this.#speaking.once(at(projectId, "/items"), json("POST", { items }));
        return added.items;
    }
    async items(projectId, which = {}) {
        return (await this.#speaking.patiently(at(projectId, "/items", which), {}));
    }
    /** Moves it (`before` or `after` another), or changes its fields. */
    async changeItem(projectId, itemId, change) {
        return (await this.#speaking.once(at(projectId, `/items/${itemId}`), json("PATCH", change)));
    }
    async skipItem(projectId, itemId) {
        return (await this.#speaking.patiently(at(projectId, `/items/${itemId}/skip`), json("POST")));
    }
    async requeueItem(projectId, itemId) {
        return (await this.#speaking.once(at(projectId, `/items/${itemId}/requeue`), json("POST")));
    }
    async deleteItem(projectId, itemId) {
        await this.#speaking.once(at(projectId, `/items/${itemId}`), json("DELETE"));
    }
    async runs(projectId, which = {}) {
        return (await this.#speaking.patiently(at(projectId, "/runs", which), {}));
    }
    async status(projectId) {
        return (await this.#speaking.patiently(at(projectId, "/queue/status"), {}));
    }
    /** Asked once: a repeated call would be refused by the run that the first one has started. */
    async run(projectId, how = {}) {
        return (await this.#speaking.once(at(projectId, "/run"), json("POST", how)));
    }
    /** Asked until it is answered: to stop twice is to stop once. */
    async stop(projectId, why = {}) {
        return (await this.#speaking.patiently(at(projectId, "/queue/stop"), json("POST", why)));
    }
    /** `success` only with proof; else `still_running` says what is not proven to be dead, and one may ask again. */
    async forceStop(projectId, { wait, reason } = {}) {
        const path = at(projectId, "/queue/force-stop", { wait });
        return (await this.#speaking.patiently(path, json("POST", { reason })));
    }
    /** Each project has an answer of its own. */
    async batch(projectIds, { wait, ...what }) {
        const asked = json("POST", { ...what, project_ids: projectIds });
        const path = `/api/v1/projects/batch${queryOf({ wait })}`;
        const answered = await (what.action === "run"
            ? this.#speaking.once(path, asked)
            : this.#speaking.patiently(path, asked));
        return answered.items;
    }
    /** How the queue stands, and then everything that happens to it, each once, until the signal aborts. */
    async *stream(projectId, options = {}) {
        const connect = this.#speaking.connect(at(projectId, "/queue/stream"));
        for await (const { id, event, data } of resuming(connect, () => false, options))
            yield { ...JSON.parse(data), event, seq: Number(id) };
    }
}
function at(projectId, below = "", query = {}) {
    return `/api/v1/projects/${encodeURIComponent(projectId)}${below}${queryOf(query)}`;
}
