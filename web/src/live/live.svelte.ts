/** What a tab knows of the live part: the connection's state, and whom to tell what happens. */

import type { LiveEvent } from "../client.ts";
import type { ConnectionState } from "./connection.ts";
import type { FromTab, ToTab } from "./messages.ts";
import { Switchboard } from "./switchboard.ts";

declare const __BUILD__: string;

type Listener = { event?: (event: LiveEvent) => void; reload?: () => void; following?: (taskIds: string[]) => void };

const first: ConnectionState = { word: "resuming", since: Date.now(), trouble: "" };
export const connection = $state({ state: first });

const listeners = new Set<Listener>();
const open = new Map<symbol, string>();
let send: ((message: FromTab) => void) | undefined;

/** Begins to listen; once for a tab. */
export function connect(): void {
  if (send) return send({ say: "signed-in" });
  send = typeof SharedWorker === "undefined" ? alone() : shared();
  document.addEventListener("visibilitychange", () =>
    send?.({ say: "visible", visible: document.visibilityState === "visible" }),
  );
  window.addEventListener("pagehide", () => send?.({ say: "goodbye" }));
  window.addEventListener("pageshow", ({ persisted }) => {
    if (persisted) send = typeof SharedWorker === "undefined" ? alone() : shared();
  });
}

/** Hears everything until the returned function is called. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Follows one task in every detail until the returned function is called. */
export function follow(taskId: string): () => void {
  const mine = Symbol(taskId);
  open.set(mine, taskId);
  const say = (): void => send?.({ say: "open", taskIds: [...new Set(open.values())] });
  say();
  return () => {
    open.delete(mine);
    say();
  };
}

function shared(): (message: FromTab) => void {
  // Named by the build: tabs of two versions do not share one worker.
  const worker = new SharedWorker("/page/live.js", { name: `windlass-${__BUILD__}`, type: "module" });
  worker.port.onmessage = ({ data }: MessageEvent<ToTab>) => hear(data);
  return (message) => worker.port.postMessage(message);
}

function alone(): (message: FromTab) => void {
  const switchboard = new Switchboard();
  const tab = Symbol("tab");
  switchboard.join(tab, hear);
  return (message) => switchboard.hear(tab, message);
}

function hear(message: ToTab): void {
  if (message.say === "connection") connection.state = message.state;
  for (const listener of listeners) {
    if (message.say === "event") listener.event?.(message.event);
    if (message.say === "reload") listener.reload?.();
    if (message.say === "following") listener.following?.(message.taskIds);
  }
}
