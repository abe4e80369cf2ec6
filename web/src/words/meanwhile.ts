/** What became of a task while somebody was being asked about it. */

import type { State } from "../client.ts";

const ENDED: Partial<Record<State, string>> = {
  completed: "Meanwhile it has completed.",
  dead: "Meanwhile it has died.",
  cancelled: "Meanwhile it was cancelled.",
};

export function meanwhile(status: State): string {
  return ENDED[status] ?? `Meanwhile it does not run any more: it is ${status}.`;
}
