/** What happened to a provider, in words: who did what, and why. */

interface Told {
  type: string;
  reason: string;
  data: { [name: string]: unknown };
}

const WORDS: Readonly<Record<string, string>> = {
  open: "Breaker opened",
  "half-open": "Breaker lets one task try",
  close: "Breaker closed",
  closed: "Breaker closed",
  pause: "Paused",
  resume: "Goes on",
  "rate-limited": "Asked to wait by the provider",
  limit: "Limit changed",
  rate: "Rate changed",
  breaker: "Breaker set",
};
/** Which members say the same as the sentence does. */
const SAID = new Set(["by", "why", "until", "task_id"]);

export function storyOf({ type, reason, data }: Told): { what: string; who: string; why: string; facts: string } {
  const text = (name: string): string => (typeof data[name] === "string" ? data[name] : "");
  const facts = Object.entries(data)
    .filter(([name, value]) => !SAID.has(name) && value !== null && typeof value !== "object")
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`);
  return { what: WORDS[type] ?? type, who: text("by"), why: text("why") || reason, facts: facts.join(", ") };
}
