/** What a tab and the worker that holds the connections say to each other. */

import type { LiveEvent, QueueEvent } from "../client.ts";
import type { ConnectionState } from "./connection.ts";

export type FromTab =
  | { say: "open"; taskIds: string[]; projectId?: string | undefined }
  | { say: "visible"; visible: boolean }
  | { say: "signed-in" }
  | { say: "goodbye" };

export type ToTab =
  | { say: "connection"; state: ConnectionState }
  | { say: "event"; event: LiveEvent; stream: "state" | "open" }
  | { say: "queue"; projectId: string; event: QueueEvent }
  /** Whatever happens to these tasks, or to this project's queue, from now on is told: their history may be read. */
  | { say: "following"; taskIds: string[]; projectId?: string | undefined }
  /** Something may have been missed: load what you show again. */
  | { say: "reload" };
