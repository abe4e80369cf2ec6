/** The filter bar's words and the URL's query: `status:dead tag:night "a fox"` ⇄ `?status=dead&tag=night&q=a+fox`. */

/** Each filter of the API by the short word that one types, which is its own where none is given. */
const SHORT: Readonly<Record<string, string>> = {
  error: "error_type",
  type: "task_type",
  agent: "subagent_type",
  user: "user_id",
  project: "project_id",
  workflow: "workflow_id",
  run: "workflow_run_id",
  interaction: "interaction_id",
  parent: "parent_task_id",
  after: "created_after",
  before: "created_before",
  updated: "updated_after",
  request: "request_id",
  job: "provider_job_id",
};
const PLAIN = ["status", "actor", "provider", "lane", "tag", "fingerprint"];
const REPEATED = new Set(["status", "tag"]);

export const FILTER_WORDS: readonly string[] = [...PLAIN, ...Object.keys(SHORT)];
export const FILTER_NAMES: readonly string[] = [...PLAIN, ...Object.values(SHORT), "q"];

export type Filters = Record<string, string[]>;

/** What was typed; `unknown` are words before a colon that no filter has. */
export function parseFilters(text: string): { filters: Filters; unknown: string[] } {
  const filters: Filters = {};
  const unknown: string[] = [];
  const searched: string[] = [];
  for (const [, word, quoted, bare] of text.matchAll(/(?:([a-z_]+):)?(?:"((?:[^"\\]|\\.)*)"|(\S+))/g)) {
    const value = quoted === undefined ? (bare ?? "") : quoted.replace(/\\(.)/g, "$1");
    if (word === undefined) searched.push(value);
    else {
      const name = SHORT[word] ?? word;
      if (!FILTER_NAMES.includes(name)) unknown.push(word);
      else if (REPEATED.has(name)) (filters[name] ??= []).push(value);
      else filters[name] = [value];
    }
  }
  if (searched.length) filters["q"] = [searched.join(" ")];
  return { filters, unknown };
}

/** The same as one would type it. */
export function printFilters(filters: Filters): string {
  const words: string[] = [];
  for (const name of FILTER_NAMES)
    for (const value of filters[name] ?? []) words.push(name === "q" ? quoted(value, /[:"]/) : word(name, value));
  return words.join(" ");
}

function word(name: string, value: string): string {
  const short = Object.keys(SHORT).find((each) => SHORT[each] === name) ?? name;
  return `${short}:${quoted(value, /[\s"]/)}`;
}

function quoted(value: string, when: RegExp): string {
  return when.test(value) || value === "" ? `"${value.replace(/["\\]/g, "\\$&")}"` : value;
}

/** Only what is a filter: a URL may hold more. */
export function filtersIn(query: URLSearchParams): Filters {
  const filters: Filters = {};
  for (const name of FILTER_NAMES) if (query.has(name)) filters[name] = query.getAll(name);
  return filters;
}

export function queryOf(filters: Filters): string {
  const query = new URLSearchParams();
  for (const name of FILTER_NAMES) for (const value of filters[name] ?? []) query.append(name, value);
  return query.toString();
}

/** As `POST /tasks/bulk` takes it: lists where several are meant. */
export function bulkFilter(filters: Filters): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(filters).map(([name, values]) => [name, REPEATED.has(name) ? values : values[0]!]),
  );
}

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;

/** Whether it may be somebody's id: long, in one piece, with a digit. */
export function looksLikeAnId(text: string): boolean {
  return /^[\w.:-]{8,200}$/.test(text) && /\d/.test(text) && !/^[a-z_]+:/.test(text);
}

export function isTaskId(text: string): boolean {
  return UUID.test(text.trim());
}
