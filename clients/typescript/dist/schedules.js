/** Schedules: what is started when, and what became of each time that it was due. */
import { json, queryOf } from "./speaking.js";
const ALL = "/api/v1/schedules";
/** A schedule is named by its id or by its name, wherever one is meant. */
export class Schedules {
    #speaking;
    constructor(speaking) {
        this.#speaking = speaking;
    }
    /** Asked once: a repeated call would be refused by the name that the first one has taken. See `put`. */
    async create(schedule) {
        return (await this.#speaking.once(ALL, json("POST", schedule)));
    }
    /** Makes the one of this name, or changes it; asked until it is answered: whoever says the same twice has it once. */
    async put({ name, ...schedule }) {
        return (await this.#speaking.patiently(at(name), json("PUT", schedule)));
    }
    async list(which = {}) {
        return (await this.#speaking.patiently(ALL + queryOf(which), {}));
    }
    async get(schedule) {
        return (await this.#speaking.patiently(at(schedule), {}));
    }
    async change(schedule, change) {
        return (await this.#speaking.once(at(schedule), json("PATCH", change)));
    }
    async delete(schedule, { reason } = {}) {
        await this.#speaking.once(at(schedule, "", { reason }), json("DELETE"));
    }
    async pause(schedule, why = {}) {
        return (await this.#speaking.patiently(at(schedule, "/pause"), json("POST", why)));
    }
    /** It goes on from now; what was due meanwhile was missed. */
    async resume(schedule, why = {}) {
        return (await this.#speaking.patiently(at(schedule, "/resume"), json("POST", why)));
    }
    /** Due now, beside its times. Asked once: to trigger twice is to start twice. */
    async trigger(schedule, why = {}) {
        return (await this.#speaking.once(at(schedule, "/trigger"), json("POST", why)));
    }
    /** Starts the due times of a time that is past, both ends with: a hundred at most. */
    async backfill(schedule, past) {
        const made = await this.#speaking.once(at(schedule, "/backfill"), json("POST", past));
        return made.items;
    }
    /** What became of its due times, the latest first. */
    async runs(schedule, which = {}) {
        return (await this.#speaking.patiently(at(schedule, "/runs", which), {}));
    }
    /** Times in words, and the next of them; nothing is made. */
    async preview(times) {
        return (await this.#speaking.patiently(`${ALL}/preview`, json("POST", times)));
    }
}
function at(schedule, below = "", query = {}) {
    return `${ALL}/${encodeURIComponent(schedule)}${below}${queryOf(query)}`;
}
