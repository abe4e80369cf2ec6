/** What an actor said, attempt by attempt, in pieces that a browser can lay out one by one. */

import type { TaskEvent } from "../client.ts";

const CHUNK = 65_536;

export interface Said {
  attempt: number;
  chunks: readonly string[];
  length: number;
}

export interface Output {
  attempts: readonly Said[];
  /** The last `seq` that is in it. */
  upTo: number;
}

export const NO_OUTPUT: Output = { attempts: [], upTo: 0 };

/** Adds what is newer than what is there; only the last piece of an attempt ever changes. */
export function withOutput(output: Output, events: readonly TaskEvent[]): Output {
  const news = events.filter((event) => event.type === "output" && event.seq > output.upTo);
  if (news.length === 0) return output;
  const attempts = [...output.attempts];
  for (let at = 0; at < news.length;) {
    const { attempt } = news[at]!;
    let text = "";
    for (; news[at]?.attempt === attempt; at += 1) text += textOf(news[at]!.data);
    const last = attempts.at(-1);
    if (last?.attempt === attempt) attempts[attempts.length - 1] = grown(last, text);
    else attempts.push(grown({ attempt, chunks: [], length: 0 }, text));
  }
  return { attempts, upTo: news.at(-1)!.seq };
}

function grown(said: Said, text: string): Said {
  const chunks = [...said.chunks];
  let rest = (chunks.length && chunks.at(-1)!.length < CHUNK ? chunks.pop()! : "") + text;
  while (rest.length > CHUNK) {
    // Lines stay whole where they are not endless: a piece is laid out as a block of its own.
    const line = rest.lastIndexOf("\n", CHUNK - 1) + 1;
    const end = line > CHUNK / 2 ? line : CHUNK;
    chunks.push(rest.slice(0, end));
    rest = rest.slice(end);
  }
  if (rest) chunks.push(rest);
  return { ...said, chunks, length: said.length + text.length };
}

function textOf(data: Record<string, unknown>): string {
  if (typeof data["text"] === "string") return data["text"];
  return `${JSON.stringify(data["data"] ?? data)}\n`;
}
