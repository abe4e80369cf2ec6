/** Webhooks: who is told of what, and what has become of each delivery. */
import type { Delivery, DeliveryState, NewWebhook, SecretWebhook, Webhook, WholeDelivery } from "./documents.ts";
import { type Page, type Speaking } from "./speaking.ts";
export declare class Webhooks {
    #private;
    constructor(speaking: Speaking);
    /** With its secret, in this answer and in no other. Asked once: whoever loses it rotates. */
    create(webhook: NewWebhook): Promise<SecretWebhook>;
    list(which?: {
        cursor?: string;
        limit?: number;
    }): Promise<Page<Webhook>>;
    get(webhookId: string): Promise<Webhook>;
    /** The next try knows of it; what waits and is subscribed no more is given up. */
    change(webhookId: string, change: Partial<NewWebhook>): Promise<Webhook>;
    delete(webhookId: string, { reason }?: {
        reason?: string;
    }): Promise<void>;
    /** Sends it `webhook.test`, however it is. */
    test(webhookId: string): Promise<Delivery>;
    /** A new secret, said once; for a day the one before signs as well. */
    rotate(webhookId: string, why?: {
        reason?: string;
    }): Promise<SecretWebhook>;
    /** What it would be told is held until it is enabled. */
    disable(webhookId: string, why?: {
        reason?: string;
    }): Promise<Webhook>;
    /** Also one that is failing or gone. What was held is sent in its order, or given up with `replay: "none"`. */
    enable(webhookId: string, how?: {
        replay?: "none" | "held";
        reason?: string;
    }): Promise<Webhook>;
    /** What it was told, or is to be, newest first. */
    deliveries(webhookId: string, which?: {
        state?: DeliveryState;
        cursor?: string;
        limit?: number;
    }): Promise<Page<Delivery>>;
    /** With its body and every try. */
    delivery(deliveryId: string): Promise<WholeDelivery>;
    /** Sends it once more, now, under the same `webhook-id`. */
    redeliver(deliveryId: string, why?: {
        reason?: string;
    }): Promise<Delivery>;
}
