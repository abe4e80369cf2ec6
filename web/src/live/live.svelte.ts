/** What a tab knows of the live part: the connection's state, and whom to tell what happens. */

import type { LiveEvent, QueueEvent } from "../client.ts";
import { type Away, hidden, HERE, returned, withNews } from "./away.ts";
import type { ConnectionState } from "./connection.ts";
import { Elected } from "./leader.ts";
import type { FromTab, ToTab } from "./messages.ts";
import { Switchboard } from "./switchboard.ts";

declare const __BUILD__: string;

type Listener = {
  event?: (event: LiveEvent) => void;
  queue?: (projectId: string, event: QueueEvent) => void;
  reload?: () => void;
  following?: (taskIds: string[], projectId: string | undefined) => void;
};

const first: ConnectionState = { word: "resuming", since: Date.now(), trouble: "" };
export const connection = $state({ state: first });
let absence = $state.raw<Away>(HERE);
export const away = {
  get state(): Away {
    return absence;
  },
  forget: (): void => void (absence = HERE),
};

const listeners = new Set<Listener>();
const open = new Map<symbol, { taskId: string } | { projectId: string }>();
let send: ((message: FromTab) => void) | undefined;

/** Begins to listen; once for a tab. */
export function connect(): void {
  if (send) return send({ say: "signed-in" });
  send = joined();
  document.addEventListener("visibilitychange", () => {
    const visible = document.visibilityState === "visible";
    absence = visible ? returned(absence, Date.now()) : hidden(Date.now());
    send?.({ say: "visible", visible });
  });
  window.addEventListener("pagehide", () => send?.({ say: "goodbye" }));
  window.addEventListener("pageshow", ({ persisted }) => {
    if (!persisted) return;
    send = joined();
    if (open.size) sayOpen();
  });
  if (open.size) sayOpen();
}

function sayOpen(): void {
  const all = [...open.values()];
  const taskIds = [...new Set(all.flatMap((each) => ("taskId" in each ? [each.taskId] : [])))];
  const projectId = all.flatMap((each) => ("projectId" in each ? [each.projectId] : [])).at(-1);
  send?.({ say: "open", taskIds, projectId });
}

function joined(): (message: FromTab) => void {
  if (typeof SharedWorker !== "undefined") return shared();
  return typeof BroadcastChannel !== "undefined" && navigator.locks ? elected() : alone();
}

/** Hears everything until the returned function is called. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Follows one task in every detail until the returned function is called. */
export function follow(taskId: string): () => void {
  return opened({ taskId });
}

/** Follows one project's queue, while nothing else is open that needs the connection more. */
export function followProject(projectId: string): () => void {
  return opened({ projectId });
}

function opened(what: { taskId: string } | { projectId: string }): () => void {
  const mine = Symbol("open");
  open.set(mine, what);
  sayOpen();
  return () => {
    open.delete(mine);
    sayOpen();
  };
}

function shared(): (message: FromTab) => void {
  // Named by the build: tabs of two versions do not share one worker.
  const worker = new SharedWorker("/page/live.js", { name: `windlass-${__BUILD__}`, type: "module" });
  worker.port.onmessage = ({ data }: MessageEvent<ToTab>) => hear(data);
  return (message) => worker.port.postMessage(message);
}

function elected(): (message: FromTab) => void {
  const name = `windlass-${__BUILD__}`;
  const channel = new BroadcastChannel(name);
  const board = (options: { missed: boolean }): Switchboard => new Switchboard(options);
  const tab = new Elected(name, { channel, locks: navigator.locks, board }, hear);
  return (message) => tab.say(message);
}

/** Plain HTTP and an old browser: every tab for itself. */
function alone(): (message: FromTab) => void {
  const switchboard = new Switchboard();
  const tab = Symbol("tab");
  switchboard.join(tab, hear);
  return (message) => switchboard.hear(tab, message);
}

function hear(message: ToTab): void {
  if (message.say === "connection") connection.state = message.state;
  if (message.say === "event" && message.stream === "state" && message.event.type !== "resync")
    absence = withNews(absence, message.event.task_id, Date.now());
  if (message.say === "reload") absence = withNews(absence, "many", Date.now());
  for (const listener of listeners) {
    if (message.say === "event") listener.event?.(message.event);
    if (message.say === "queue") listener.queue?.(message.projectId, message.event);
    if (message.say === "reload") listener.reload?.();
    if (message.say === "following") listener.following?.(message.taskIds, message.projectId);
  }
}
