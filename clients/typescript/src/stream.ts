/** A stream that comes back to where it was: the last id seen goes with every new connection. */

import { Backoff, sleep } from "./backoff.ts";
import { isPassing, Refused, refusal, Unreachable } from "./errors.ts";
import { type Message, Parser } from "./sse.ts";

export type Connection = "connecting" | "live" | "resuming";

export interface Resuming {
  /** Go on after this id: an event's `seq` for one task, a cursor for many. */
  after?: string | undefined;
  signal?: AbortSignal | undefined;
  /** Told whenever the connection is made or lost; `trouble` says why. */
  onConnection?: ((state: Connection, trouble?: unknown) => void) | undefined;
  /** Told of every place that a later stream may go on from, also between events. */
  onPlace?: ((id: string) => void) | undefined;
  backoff?: Backoff | undefined;
}

/** Makes one connection, which goes on after the id. */
export type Connect = (after: string, signal: AbortSignal | undefined) => Promise<Response>;

/** Silence for longer than two pings and a half means that nobody is there, whatever TCP thinks. */
const LONGEST_SILENCE_MS = 40_000;

/** Every message once, over any number of connections; it ends when the server says that there is no more (204) or when
 * `isLast` does, and throws what will not pass. */
export async function* resuming(
  connect: Connect,
  isLast: (message: Message) => boolean,
  { after = "", signal, onConnection, onPlace, backoff = new Backoff() }: Resuming = {},
): AsyncGenerator<Message> {
  let place = after;
  onConnection?.("connecting");
  while (!signal?.aborted) {
    let trouble: unknown;
    let wishedMs = 0;
    const parser = new Parser();
    parser.place = place;
    try {
      const answer = await open(connect, place, signal);
      if (answer.status === 204 || !answer.body) return;
      onConnection?.("live");
      for await (const text of pieces(answer.body, signal)) {
        backoff.renew();
        for (const message of parser.feed(text)) {
          yield message;
          if (message.id) place = message.id;
          if (isLast(message)) return;
        }
        if (parser.place && parser.place !== after) onPlace?.((place = parser.place));
      }
    } catch (caught) {
      if (signal?.aborted) return;
      if (!isPassing(caught)) throw caught;
      trouble = caught;
      if (caught instanceof Refused) wishedMs = (caught.retryAfter ?? 0) * 1000;
    }
    if (signal?.aborted) return;
    onConnection?.("resuming", trouble);
    await sleep(backoff.pause(Math.max(wishedMs, trouble ? 0 : (parser.retryMs ?? 0))), signal);
  }
}

async function open(connect: Connect, place: string, signal: AbortSignal | undefined): Promise<Response> {
  let answer: Response;
  try {
    answer = await connect(place, signal);
  } catch (error) {
    throw error instanceof Refused ? error : new Unreachable(error);
  }
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

async function* pieces(body: ReadableStream<Uint8Array>, signal: AbortSignal | undefined): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const stop = (): void => void reader.cancel().catch(() => undefined);
  signal?.addEventListener("abort", stop);
  try {
    while (true) {
      const { done, value } = await withinSilence(reader.read());
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } catch (error) {
    throw error instanceof Unreachable ? error : new Unreachable(error);
  } finally {
    signal?.removeEventListener("abort", stop);
    stop();
  }
}

function withinSilence<T>(reading: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Unreachable("silence")), LONGEST_SILENCE_MS);
    reading.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
