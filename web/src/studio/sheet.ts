/** A studio's sheet: what was made in one run, newest first, and what was varied from what. */

import type { ListedTask } from "../client.ts";
import { contentIdsIn } from "../words/contents.ts";

export type Action = "txt2img" | "img2img" | "img2vid";

export const ACTIONS: Readonly<Record<string, string>> = {
  txt2img: "from words",
  img2img: "from a picture",
  img2vid: "film",
};

export interface Card {
  task: ListedTask;
  action: string;
  prompt: string;
  /** What it was begun with: a file of ours, or an address elsewhere. */
  source: string | undefined;
  params: Readonly<Record<string, unknown>>;
  contentIds: string[];
  /** The task that it was varied from, and which of its pictures, counted from 1. */
  from: { taskId: string; prompt: string; picture: number | undefined } | undefined;
  /** The tasks that were varied from it. */
  into: string[];
}

export function sheetOf(tasks: readonly ListedTask[]): Card[] {
  const cards = tasks.map(cardOf);
  const byId = new Map(cards.map((card) => [card.task.task_id, card]));
  const byContent = new Map(cards.flatMap((card) => card.contentIds.map((id, at) => [id, { card, at }] as const)));
  for (const card of cards) {
    const made = card.source ? byContent.get(card.source) : undefined;
    const parent = made?.card ?? byId.get(variedFrom(card.task));
    if (!parent || parent === card) continue;
    card.from = { taskId: parent.task.task_id, prompt: parent.prompt, picture: made && made.at + 1 };
    parent.into.unshift(card.task.task_id); // the newest comes first in the list, and last here
  }
  return cards;
}

function cardOf(task: ListedTask): Card {
  const payload = task.payload ?? {};
  const params = payload["params"];
  return {
    task,
    action: textIn(payload["action"]) ?? "",
    prompt: textIn(payload["prompt"]) ?? "",
    source: textIn(payload["source_image"]),
    params: typeof params === "object" && params !== null ? (params as Record<string, unknown>) : {},
    contentIds: contentIdsIn(task.result),
    from: undefined,
    into: [],
  };
}

function variedFrom(task: ListedTask): string {
  const noted = task.payload?.["source_data"] as { varied_from?: unknown } | null | undefined;
  return textIn(noted?.varied_from) ?? "";
}

function textIn(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** How many places to keep free until the pictures are there. */
export function expected({ contentIds, action, params }: Card): number {
  if (contentIds.length) return contentIds.length;
  if (action === "img2vid") return 1;
  const wanted = Number(params["num_images"]);
  return wanted >= 1 && wanted <= 8 ? wanted : 4;
}

export interface Order {
  provider: string;
  action: string;
  prompt: string;
  source: string;
  /** The parameters' text, as a form has made it. */
  params: string;
  variedFrom: string | undefined;
  runId: string;
  interactionId: string;
}

/** What `POST /tasks` takes for it; the parameters stay as they were typed. */
export function bodyOf(order: Order): string {
  const payload = [
    `"action": ${JSON.stringify(order.action)}`,
    `"prompt": ${JSON.stringify(order.prompt)}`,
    `"params": ${order.params}`,
    `"workflow_run_id": ${JSON.stringify(order.runId)}`,
    `"interaction_id": ${JSON.stringify(order.interactionId)}`,
  ];
  if (order.action !== "txt2img") payload.push(`"source_image": ${JSON.stringify(order.source)}`);
  if (order.variedFrom) payload.push(`"source_data": ${JSON.stringify({ varied_from: order.variedFrom })}`);
  return `{"actor": "media", "provider": ${JSON.stringify(order.provider)}, "payload": {${payload.join(", ")}}}`;
}
