/** The receipt of a run that was stopped by force, in words: which processes were sent what, when, and what proves it. */

import type { Receipt } from "../client.ts";

type Killed = Receipt["tasks"][number];

const PROOFS: Readonly<Record<NonNullable<Killed["proof"]>, string>> = {
  returned: "Its worker has seen the work return.",
  keeper: "The keeper of its processes has seen the last of them die.",
  guardian: "The guardian has killed its worker, and seen the last of its processes die.",
  successor: "Its worker died with its guardian; who was started in their place has found nothing of them left.",
  lease: "Nobody has seen it end: its lease is over, by which its worker had to have stopped it.",
};

export function proofOf({ proof }: Pick<Killed, "proof">): string {
  return proof ? PROOFS[proof] : "Nothing was under way: no worker had it.";
}

export interface Sent {
  signal: string;
  at: string;
  pids: number[];
  /** More than are named. */
  inAll: number;
}

export function signalsOf({ processes }: Pick<Killed, "processes">): Sent[] {
  const signals = processes?.["signals"];
  if (!Array.isArray(signals)) return [];
  return signals.map((each: { signal?: unknown; at?: unknown; pids?: unknown; pids_in_all?: unknown }) => {
    const pids = Array.isArray(each.pids) ? each.pids.filter((pid): pid is number => typeof pid === "number") : [];
    const inAll = typeof each.pids_in_all === "number" ? each.pids_in_all : pids.length;
    return { signal: String(each.signal ?? ""), at: String(each.at ?? ""), pids, inAll };
  });
}

/** When the last process was seen to be gone. */
export function goneAt({ processes }: Pick<Killed, "processes">): string | undefined {
  const at = processes?.["none_left_at"];
  return typeof at === "string" ? at : undefined;
}
