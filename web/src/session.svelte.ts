/** Who is signed in. The page never keeps a key: the cookie that it gets cannot be read by any script. */

import { Refused } from "./client.ts";
import { send } from "./api.ts";
import { go } from "./router.svelte.ts";

export interface Session {
  user_id: string;
  role: "user" | "viewer" | "admin";
  expires_at: string | null;
  /** Whether a worker may be killed here to see what happens. */
  faults?: boolean;
  /** Pages elsewhere that know more, as templates with `{task_id}` and the like. */
  links?: Record<string, string>;
}

/** `undefined` until it is known, `null` when nobody is. */
export const session = $state<{ who: Session | null | undefined }>({ who: undefined });

export async function findSession(): Promise<void> {
  const token = tokenInUrl();
  if (token && (await signIn({ link_token: token }).catch(() => false))) return;
  try {
    session.who = await send<Session>("GET", "/session");
  } catch (error) {
    if (error instanceof Refused && error.status === 401) session.who = null;
    else throw error;
  }
}

export async function signIn(by: { key: string } | { link_token: string }): Promise<boolean> {
  session.who = await send<Session>("POST", "/session", JSON.stringify(by));
  return true;
}

export async function signOut(): Promise<void> {
  await send("DELETE", "/session");
  session.who = null;
}

export function mayWrite(): boolean {
  return session.who?.role === "admin" || session.who?.role === "user";
}

/** Hosts, processes and everybody's work are shown to those who operate. */
export function seesEverything(): boolean {
  return session.who?.role === "admin" || session.who?.role === "viewer";
}

export function isAdmin(): boolean {
  return session.who?.role === "admin";
}

/** A link that signs in once carries its token behind the `#`, which no server's log sees; it leaves the address bar at once. */
function tokenInUrl(): string | undefined {
  const token = new URLSearchParams(location.hash.slice(1)).get("link_token") ?? undefined;
  if (token) go(location.pathname === "/sign-in" ? "/" : location.pathname + location.search, { replace: true });
  return token;
}
