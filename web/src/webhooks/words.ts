/** What endpoints and deliveries say, in sentences, and where what they tell of is looked at. */

import type { Delivery, EndpointState, Webhook, WebhookEvent } from "../client.ts";

export const ENDPOINT_STATES: readonly EndpointState[] = ["enabled", "failing", "disabled", "gone"];
export const DELIVERY_STATES: readonly Delivery["state"][] = ["waiting", "held", "delivered", "failed"];

/** What can be subscribed to, by kind; `webhook.test` comes to who asks for it. */
export const EVENTS: Readonly<Record<string, readonly WebhookEvent[]>> = {
  task: ["task.completed", "task.dead", "task.cancelled", "task.retrying"],
  approval: ["approval.requested"],
  project: ["project.started", "project.stopped"],
  workflow: ["workflow.completed", "workflow.failed", "workflow.escalated", "workflow.cancelled"],
  schedule: ["schedule.failed"],
  provider: ["provider.paused", "provider.resumed", "provider.breaker-opened", "provider.breaker-closed"],
  webhook: ["webhook.disabled"],
};

/** How an endpoint stands, and what becomes of what it is to be told; nothing of one that is well. */
export function standOf({ state, reason, failing_since }: Webhook): string {
  switch (state) {
    case "enabled":
      return "";
    case "failing":
      return `${sentence(reason ?? "it failed")} Its oldest delivery goes on trying, and the others are held; the next answer with 2xx releases them in their order. After five days it is disabled.`;
    case "disabled":
      return failing_since
        ? `${sentence(reason ?? "it failed for five days")} Everything is held. It is tried once a day for a month, and enables itself when it answers; or enable it by hand.`
        : "Somebody disabled it. What it would be told is held, and sent when it is enabled.";
    case "gone":
      return `${sentence(reason ?? "it said that it is gone")} Everything is held, and it is not tried any more: only a person enables it again.`;
  }
}

const REASONS: Readonly<Record<string, string>> = {
  unsubscribed: "given up: this event is subscribed no more",
  "not replayed": "given up when the webhook was enabled",
  deleted: "given up: its webhook was deleted",
  cancelled: "its task was cancelled",
};

export function reasonOf({ reason }: Pick<Delivery, "reason">): string {
  return reason ? (REASONS[reason] ?? reason) : "";
}

const PLACES: Readonly<Record<string, string>> = {
  task: "tasks",
  approval: "tasks",
  project: "projects",
  workflow: "workflows",
  provider: "providers",
  schedule: "schedules",
};

/** What it tells of. */
export function hrefOfSubject({ type, subject }: Pick<Delivery, "type" | "subject">): string | undefined {
  const place = PLACES[type.split(".")[0] ?? ""];
  return place ? `/${place}/${encodeURIComponent(subject)}` : undefined;
}

/** `all of task, workflow.failed`: as short as it is true. */
export function eventsOf(events: readonly string[]): string {
  if (!events.length) return "only tasks that name its url";
  return events.map((each) => (each.endsWith(".*") ? `all of ${each.slice(0, -2)}` : each)).join(", ");
}

export function filterOf(filter: Webhook["filter"]): string {
  return Object.entries(filter)
    .map(([name, value]) => `${name.replace("_id", "")} ${value}`)
    .join(", ");
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}
