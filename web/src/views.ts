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
  admin?: true;
}

const later = (load: () => Promise<{ default: View }>) => ({ view: load, lazy: true as const });

export const PLACES: readonly Place[] = [
  { path: /^\/$/, view: Now, name: "Now", href: "/", key: "n", group: "work" },
  { path: /^\/tasks$/, view: Tasks, name: "Tasks", href: "/tasks", key: "t", group: "work" },
  { path: /^\/tasks\/(?<taskId>[0-9a-f-]{32,36})$/, view: Task },
  { path: /^\/new(?:\/(?<actor>[a-z][a-z0-9-]*))?$/, view: New, name: "New", href: "/new", key: "c", group: "work" },
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
    path: /^\/actors(?:\/(?<actor>[a-z][a-z0-9-]*))?$/,
    view: Actors,
    name: "Actors",
    href: "/actors",
    key: "a",
    group: "operate",
  },
  {
    path: /^\/providers$/,
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
  },
  {
    path: /^\/keys$/,
    ...later(() => import("./views/Keys.svelte")),
    name: "Keys",
    href: "/keys",
    key: "k",
    group: "operate",
    admin: true,
  },
  {
    path: /^\/audit$/,
    ...later(() => import("./views/Audit.svelte")),
    name: "Audit",
    href: "/audit",
    key: "u",
    group: "operate",
    admin: true,
  },
];

export function placeOf(path: string): { place: Place; props: Record<string, string | undefined> } | undefined {
  for (const place of PLACES) {
    const match = place.path.exec(path);
    if (match) return { place, props: { ...match.groups } };
  }
  return undefined;
}
