/** Webhooks: who is told of what, and what has become of each delivery. */

import type { Delivery, DeliveryState, NewWebhook, SecretWebhook, Webhook, WholeDelivery } from "./documents.ts";
import { json, type Page, type Query, queryOf, type Speaking } from "./speaking.ts";

const ALL = "/api/v1/webhooks";

export class Webhooks {
  readonly #speaking: Speaking;

  constructor(speaking: Speaking) {
    this.#speaking = speaking;
  }

  /** With its secret, in this answer and in no other. Asked once: whoever loses it rotates. */
  async create(webhook: NewWebhook): Promise<SecretWebhook> {
    return (await this.#speaking.once(ALL, json("POST", webhook))) as SecretWebhook;
  }

  async list(which: { cursor?: string; limit?: number } = {}): Promise<Page<Webhook>> {
    return (await this.#speaking.patiently(ALL + queryOf(which), {})) as Page<Webhook>;
  }

  async get(webhookId: string): Promise<Webhook> {
    return (await this.#speaking.patiently(at(webhookId), {})) as Webhook;
  }

  /** The next try knows of it; what waits and is subscribed no more is given up. */
  async change(webhookId: string, change: Partial<NewWebhook>): Promise<Webhook> {
    return (await this.#speaking.once(at(webhookId), json("PATCH", change))) as Webhook;
  }

  async delete(webhookId: string, { reason }: { reason?: string } = {}): Promise<void> {
    await this.#speaking.once(at(webhookId, "", { reason }), json("DELETE"));
  }

  /** Sends it `webhook.test`, however it is. */
  async test(webhookId: string): Promise<Delivery> {
    return (await this.#speaking.once(at(webhookId, "/test"), json("POST"))) as Delivery;
  }

  /** A new secret, said once; for a day the one before signs as well. */
  async rotate(webhookId: string, why: { reason?: string } = {}): Promise<SecretWebhook> {
    return (await this.#speaking.once(at(webhookId, "/rotate"), json("POST", why))) as SecretWebhook;
  }

  /** What it would be told is held until it is enabled. */
  async disable(webhookId: string, why: { reason?: string } = {}): Promise<Webhook> {
    return (await this.#speaking.patiently(at(webhookId, "/disable"), json("POST", why))) as Webhook;
  }

  /** Also one that is failing or gone. What was held is sent in its order, or given up with `replay: "none"`. */
  async enable(webhookId: string, how: { replay?: "none" | "held"; reason?: string } = {}): Promise<Webhook> {
    return (await this.#speaking.once(at(webhookId, "/enable"), json("POST", how))) as Webhook;
  }

  /** What it was told, or is to be, newest first. */
  async deliveries(
    webhookId: string,
    which: { state?: DeliveryState; cursor?: string; limit?: number } = {},
  ): Promise<Page<Delivery>> {
    return (await this.#speaking.patiently(at(webhookId, "/deliveries", which), {})) as Page<Delivery>;
  }

  /** With its body and every try. */
  async delivery(deliveryId: string): Promise<WholeDelivery> {
    return (await this.#speaking.patiently(delivered(deliveryId), {})) as WholeDelivery;
  }

  /** Sends it once more, now, under the same `webhook-id`. */
  async redeliver(deliveryId: string, why: { reason?: string } = {}): Promise<Delivery> {
    return (await this.#speaking.once(delivered(deliveryId, "/redeliver"), json("POST", why))) as Delivery;
  }
}

function at(webhookId: string, below = "", query: Query = {}): string {
  return `${ALL}/${encodeURIComponent(webhookId)}${below}${queryOf(query)}`;
}

function delivered(deliveryId: string, below = ""): string {
  return `/api/v1/deliveries/${encodeURIComponent(deliveryId)}${below}`;
}
