/** Why a task waits, as a sentence of its own. */

import type { Why } from "../client.ts";
import { ago } from "./durations.ts";

export function sentenceOf(why: Pick<Why, "message" | "details">, now: number): string {
  const until = why.details["until"] ?? why.details["retry_at"];
  const when = typeof until === "string" ? Date.parse(until) : NaN;
  const said = why.message.charAt(0).toUpperCase() + why.message.slice(1);
  return Number.isNaN(when) ? said : `${said.replace(/ at the time given$/, "")}, ${ago(when, now)}`;
}
