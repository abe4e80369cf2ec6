/** What the page says about its connection: one word out of what its two streams report. */

export type Word = "live" | "resuming" | "signed-out";

export interface ConnectionState {
  word: Word;
  /** When it became so, in milliseconds. */
  since: number;
  /** Why, if it is known. */
  trouble: string;
}

export type Report = { stream: "state" | "open"; word: Word; trouble?: string };

export interface Connections {
  reports: Readonly<Partial<Record<Report["stream"], Report>>>;
  shown: ConnectionState;
}

export function connecting(now: number): Connections {
  return { reports: {}, shown: { word: "resuming", since: now, trouble: "" } };
}

const WORST: readonly Word[] = ["signed-out", "resuming", "live"];

/** The worse of the two is shown; the time goes on counting while the word stays. */
export function withReport(before: Connections, report: Report, now: number): Connections {
  const reports = { ...before.reports, [report.stream]: report };
  const all = Object.values(reports);
  const word = WORST.find((each) => all.some((said) => said.word === each)) ?? "resuming";
  const trouble = all.find((said) => said.word === word)?.trouble ?? "";
  const since = word === before.shown.word ? before.shown.since : now;
  return { reports, shown: { word, since, trouble } };
}

/** A stream that nobody needs any more says nothing about the connection. */
export function withoutStream(before: Connections, stream: Report["stream"], now: number): Connections {
  const reports = { ...before.reports };
  delete reports[stream];
  const left = Object.values(reports)[0];
  return left ? withReport({ ...before, reports }, left, now) : { ...before, reports };
}
