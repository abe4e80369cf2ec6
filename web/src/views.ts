/** The views, written once: their paths, their names in the navigation, and the key that goes there after `g`. */

import type { Component } from "svelte";
import Actors from "./views/Actors.svelte";
import New from "./views/New.svelte";
import Now from "./views/Now.svelte";
import Task from "./views/Task.svelte";
import Tasks from "./views/Tasks.svelte";

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type View = Component<any>;

export interface Place {
  path: RegExp;
  view: View | (() => Promise<{ default: View }>);
  lazy?: true;
  name?: string;
  href?: string;
  key?: string;
  /** Which part of the navigation; the second is for those who operate. */
  group?: "work" | "operate";
  /** Whom it is shown to, if not to everybody. */
  to?: "operators" | "admins";
  /** Whether its name says how much waits there. */
  badge?: true;
}

const later = (load: () => Promise<{ default: View }>) => ({ view: load, lazy: true as const });

export const PLACES: readonly Place[] = [
  { path: /^\/$/, view: Now, name: "Now", href: "/", key: "n", group: "work" },
  { path: /^\/tasks$/, view: Tasks, name: "Tasks", href: "/tasks", key: "t", group: "work" },
  { path: /^\/tasks\/(?<taskId>[0-9a-f-]{32,36})$/, view: Task },
  { path: /^\/compare$/, ...later(() => import("./views/Compare.svelte")) },
  { path: /^\/new(?:\/(?<actor>[a-z][a-z0-9-]*))?$/, view: New, name: "New", href: "/new", key: "c", group: "work" },
  {
    path: /^\/studio$/,
    ...later(() => import("./views/Studio.svelte")),
    name: "Studio",
    href: "/studio",
    key: "s",
    group: "work",
  },
  {
    path: /^\/projects$/,
    ...later(() => import("./views/Projects.svelte")),
    name: "Projects",
    href: "/projects",
    key: "r",
    group: "work",
  },
  { path: /^\/projects\/(?<projectId>[0-9a-f-]{32,36})$/, ...later(() => import("./views/Project.svelte")) },
  {
    path: /^\/workflows$/,
    ...later(() => import("./views/Workflows.svelte")),
    name: "Workflows",
    href: "/workflows",
    key: "f",
    group: "work",
  },
  { path: /^\/workflows\/(?<workflowId>[0-9a-f-]{32,36})$/, ...later(() => import("./views/Workflow.svelte")) },
  {
    path: /^\/approvals$/,
    ...later(() => import("./views/Approvals.svelte")),
    name: "Approvals",
    href: "/approvals",
    key: "i",
    group: "work",
    badge: true,
  },
  {
    path: /^\/schedules$/,
    ...later(() => import("./views/Schedules.svelte")),
    name: "Schedules",
    href: "/schedules",
    key: "h",
    group: "work",
  },
  { path: /^\/schedules\/(?<schedule>[^/]+)$/, ...later(() => import("./views/Schedule.svelte")) },
  {
    path: /^\/dead$/,
    ...later(() => import("./views/DeadLetters.svelte")),
    name: "Dead letters",
    href: "/dead",
    key: "d",
    group: "work",
  },
  {
    path: /^\/media$/,
    ...later(() => import("./views/Media.svelte")),
    name: "Media",
    href: "/media",
    key: "m",
    group: "work",
  },
  {
    path: /^\/memory$/,
    ...later(() => import("./views/Memory.svelte")),
    name: "Memory",
    href: "/memory",
    key: "e",
    group: "work",
  },
  { path: /^\/memory\/(?<eventId>[0-9a-f-]{32,36})$/, ...later(() => import("./views/MemoryEvent.svelte")) },
  {
    path: /^\/costs$/,
    ...later(() => import("./views/Costs.svelte")),
    name: "Costs",
    href: "/costs",
    key: "o",
    group: "work",
  },
  {
    path: /^\/actors(?:\/(?<actor>[a-z][a-z0-9-]*))?$/,
    view: Actors,
    name: "Actors",
    href: "/actors",
    key: "a",
    group: "operate",
  },
  {
    path: /^\/providers(?:\/(?<provider>[^/]+))?$/,
    ...later(() => import("./views/Providers.svelte")),
    name: "Providers",
    href: "/providers",
    key: "p",
    group: "operate",
  },
  {
    path: /^\/workers$/,
    ...later(() => import("./views/Workers.svelte")),
    name: "Workers",
    href: "/workers",
    key: "w",
    group: "operate",
    to: "operators",
  },
  {
    path: /^\/webhooks$/,
    ...later(() => import("./views/Webhooks.svelte")),
    name: "Webhooks",
    href: "/webhooks",
    key: "b",
    group: "operate",
  },
  { path: /^\/webhooks\/(?<webhookId>[0-9a-f-]{32,36})$/, ...later(() => import("./views/Webhook.svelte")) },
  { path: /^\/deliveries\/(?<deliveryId>[0-9a-f-]{32,36})$/, ...later(() => import("./views/Delivery.svelte")) },
  {
    path: /^\/keys$/,
    ...later(() => import("./views/Keys.svelte")),
    name: "Keys",
    href: "/keys",
    key: "k",
    group: "operate",
    to: "admins",
  },
  {
    path: /^\/audit$/,
    ...later(() => import("./views/Audit.svelte")),
    name: "Audit",
    href: "/audit",
    key: "u",
    group: "operate",
    to: "operators",
  },
];

export function placeOf(path: string): { place: Place; props: Record<string, string | undefined> } | undefined {
  for (const place of PLACES) {
    const match = place.path.exec(path);
    if (match) return { place, props: { ...match.groups } };
  }
  return undefined;
}
