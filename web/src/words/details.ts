/** What an entry of the audit log says beside who, what and to whom: nothing of what was left empty, and of lists how long they are. */
export function detailsOf(details: Record<string, unknown>): string {
  return Object.entries(details)
    .map(([name, value]) => ({ name: name.replaceAll("_", " "), said: saidOf(value) }))
    .filter(({ said }) => said !== "")
    .map(({ name, said }) => `${name} ${said}`)
    .join(" · ");
}

/** In words as far as it goes: a receipt of twenty tasks is not read in a table. */
function saidOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) {
    if (value.some((each) => typeof each === "object")) return String(value.length);
    return value.join(", ");
  }
  if (typeof value !== "object") return String(value);
  return Object.entries(value)
    .map(([name, each]) => `${name} ${typeof each === "object" ? JSON.stringify(each) : each}`)
    .join(", ");
}

const VIEWS: Readonly<Record<string, string>> = { task: "tasks", project: "projects", workflow: "workflows" };

/** Where what it was done to can be seen, if the page has a view of it. */
export function hrefOfTarget(action: string, target: string): string | undefined {
  const view = VIEWS[action.split(".")[0] ?? ""];
  return view && target ? `/${view}/${target}` : undefined;
}
