/** The page's own conversation with the API it came from. */

import { compareBuild } from "./build.svelte.ts";
import { type Problem, Refused, Unreachable, Windlass } from "./client.ts";

export const windlass = new Windlass();
export const rest = windlass.rest;

/** The document that answers, or the refusal as an error that says what the API said. */
export async function ask<T>(asking: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await asking.catch((cause: unknown) => {
    throw new Unreachable(cause);
  });
  compareBuild(response);
  if (response.ok) return data as T;
  throw new Refused(response.status, (error ?? {}) as Partial<Problem>);
}

/** For calls whose body must go as it is, and for those that the types do not know yet. */
export async function send<T>(
  method: string,
  path: string,
  body?: BodyInit,
  headers: Record<string, string> = {},
): Promise<T> {
  const init = { method, headers: { "Content-Type": "application/json", ...headers } };
  const request = new Request(`/api/v1${path}`, body === undefined ? init : { ...init, body });
  return ask(
    fetch(request).then(async (response) => {
      const document: unknown = await response.json().catch(() => undefined);
      return { data: document as T, error: document, response };
    }),
  );
}
