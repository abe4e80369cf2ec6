/** A stream that comes back to where it was: the last id seen goes with every new connection. */
import { Backoff, sleep } from "./backoff.js";
import { isPassing, Refused, refusal, Unreachable } from "./errors.js";
import { Parser } from "./sse.js";
/** Silence for longer than two pings and a half means that nobody is there, whatever TCP thinks. */
const LONGEST_SILENCE_MS = 40_000;
/** Every message once, over any number of connections; it ends when the server says that there is no more (204) or when
 * `isLast` does, and throws what will not pass. */
export async function* resuming(connect, isLast, { after = "", signal, onConnection, onPlace, backoff = new Backoff() } = {}) {
    let place = after;
    onConnection?.("connecting");
    while (!signal?.aborted) {
        let trouble;
        let wishedMs = 0;
        const parser = new Parser();
        parser.place = place;
        try {
            const answer = await open(connect, place, signal);
            if (answer.status === 204 || !answer.body)
                return;
            onConnection?.("live");
            for await (const text of pieces(answer.body, signal)) {
                backoff.renew();
                for (const message of parser.feed(text)) {
                    yield message;
                    if (message.id)
                        place = message.id;
                    if (isLast(message))
                        return;
                }
                if (parser.place && parser.place !== after)
                    onPlace?.((place = parser.place));
            }
        }
        catch (caught) {
            if (signal?.aborted)
                return;
            if (!isPassing(caught))
                throw caught;
            trouble = caught;
            if (caught instanceof Refused)
                wishedMs = (caught.retryAfter ?? 0) * 1000;
        }
        if (signal?.aborted)
            return;
        onConnection?.("resuming", trouble);
        await sleep(backoff.pause(Math.max(wishedMs, trouble ? 0 : (parser.retryMs ?? 0))), signal);
    }
}
async function open(connect, place, signal) {
    let answer;
    try {
        answer = await connect(place, signal);
    }
    catch (error) {
        throw error instanceof Refused ? error : new Unreachable(error);
    }
    if (!answer.ok)
        throw await refusal(answer);
    return answer;
}
async function* pieces(body, signal) {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    const stop = () => void reader.cancel().catch(() => undefined);
    signal?.addEventListener("abort", stop);
    try {
        while (true) {
            const { done, value } = await withinSilence(reader.read());
            if (done)
                return;
            yield decoder.decode(value, { stream: true });
        }
    }
    catch (error) {
        throw error instanceof Unreachable ? error : new Unreachable(error);
    }
    finally {
        signal?.removeEventListener("abort", stop);
        stop();
    }
}
function withinSilence(reading) {
    return new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Unreachable("silence")), LONGEST_SILENCE_MS);
        reading.then(resolve, reject).finally(() => clearTimeout(timer));
    });
}
