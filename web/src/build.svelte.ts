/** Which build this page is, and whether the API serves a newer one: it is offered, never forced. */

declare const __BUILD__: string;

export const build = $state({ isOld: false });

/** Every answer says which build it comes with, as `version+build`. */
export function compareBuild(answer: Response): void {
  const served = answer.headers.get("Windlass-Build")?.split("+")[1];
  if (served && __BUILD__ !== "unbuilt") build.isOld = !served.startsWith(__BUILD__);
}
