/** What can go wrong, as one error each for an answer that refuses and for no answer at all. */

import type { Problem } from "./documents.ts";

/** The API answered, and said no: `problem` is its problem+json. */
export class Refused extends Error {
  readonly status: number;
  readonly problem: Partial<Problem>;
  /** Seconds, where the answer named a time to come back. */
  readonly retryAfter: number | undefined;

  constructor(status: number, problem: Partial<Problem>, retryAfter?: number) {
    super(problem.detail ?? problem.title ?? `the API answered ${status}`);
    this.name = "Refused";
    this.status = status;
    this.problem = problem;
    this.retryAfter = retryAfter;
  }

  get code(): string {
    return this.problem.code ?? String(this.status);
  }
}

/** Nobody answered. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super("nobody answers there", { cause });
    this.name = "Unreachable";
  }
}

export async function refusal(answer: Response): Promise<Refused> {
  const text = await answer.text().catch(() => "");
  return new Refused(answer.status, problemIn(text), secondsIn(answer.headers.get("Retry-After")));
}

function problemIn(text: string): Partial<Problem> {
  try {
    const document: unknown = JSON.parse(text);
    return typeof document === "object" && document !== null ? document : {};
  } catch {
    return text ? { detail: text.slice(0, 300) } : {};
  }
}

function secondsIn(header: string | null): number | undefined {
  const seconds = Number(header ?? NaN);
  return Number.isFinite(seconds) ? seconds : undefined;
}

/** Whether the same request may succeed later: nobody there, or the API says that it cannot serve just now. */
export function isPassing(trouble: unknown): boolean {
  return (
    trouble instanceof Unreachable || (trouble instanceof Refused && [429, 502, 503, 504].includes(trouble.status))
  );
}
