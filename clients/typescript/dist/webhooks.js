/** Webhooks: who is told of what, and what has become of each delivery. */
import { json, queryOf } from "./speaking.js";
const ALL = "/api/v1/webhooks";
export class Webhooks {
    #speaking;
    constructor(speaking) {
        this.#speaking = speaking;
    }
    /** With its secret, in this answer and in no other. Asked once: whoever loses it rotates. */
    async create(webhook) {
        return (await this.#speaking.once(ALL, json("POST", webhook)));
    }
    async list(which = {}) {
        return (await this.#speaking.patiently(ALL + queryOf(which), {}));
    }
    async get(webhookId) {
        return (await this.#speaking.patiently(at(webhookId), {}));
    }
    /** The next try knows of it; what waits and is subscribed no more is given up. */
    async change(webhookId, change) {
        return (await this.#speaking.once(at(webhookId), json("PATCH", change)));
    }
    async delete(webhookId, { reason } = {}) {
        await this.#speaking.once(at(webhookId, "", { reason }), json("DELETE"));
    }
    /** Sends it `webhook.test`, however it is. */
    async test(webhookId) {
        return (await this.#speaking.once(at(webhookId, "/test"), json("POST")));
    }
    /** A new secret, said once; for a day the one before signs as well. */
    async rotate(webhookId, why = {}) {
        return (await this.#speaking.once(at(webhookId, "/rotate"), json("POST", why)));
    }
    /** What it would be told is held until it is enabled. */
    async disable(webhookId, why = {}) {
        return (await this.#speaking.patiently(at(webhookId, "/disable"), json("POST", why)));
    }
    /** Also one that is failing or gone. What was held is sent in its order, or given up with `replay: "none"`. */
    async enable(webhookId, how = {}) {
        return (await this.#speaking.once(at(webhookId, "/enable"), json("POST", how)));
    }
    /** What it was told, or is to be, newest first. */
    async deliveries(webhookId, which = {}) {
        return (await this.#speaking.patiently(at(webhookId, "/deliveries", which), {}));
    }
    /** With its body and every try. */
    async delivery(deliveryId) {
        return (await this.#speaking.patiently(delivered(deliveryId), {}));
    }
    /** Sends it once more, now, under the same `webhook-id`. */
    async redeliver(deliveryId, why = {}) {
        return (await this.#speaking.once(delivered(deliveryId, "/redeliver"), json("POST", why)));
    }
}
function at(webhookId, below = "", query = {}) {
    return `${ALL}/${encodeURIComponent(webhookId)}${below}${queryOf(query)}`;
}
function delivered(deliveryId, below = "") {
    return `/api/v1/deliveries/${encodeURIComponent(deliveryId)}${below}`;
}
