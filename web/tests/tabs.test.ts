import assert from "node:assert/strict";
import { test } from "node:test";
import { CATCH_UP_MS, HERE, hidden, returned, saidOf, withNews } from "../src/live/away.ts";
import { type Board, Elected } from "../src/live/leader.ts";
import type { FromTab, ToTab } from "../src/live/messages.ts";
import { sentenceOf } from "../src/words/why.ts";

/** What one leader has made: whom it heard, and how to speak to each. */
class Made implements Board {
  readonly heard = new Map<unknown, FromTab[]>();
  readonly sends = new Map<unknown, (message: ToTab) => void>();
  readonly missed: boolean;
  closed = false;
  constructor(missed: boolean) {
    this.missed = missed;
  }
  join(tab: unknown, send: (message: ToTab) => void): void {
    this.sends.set(tab, send);
    this.heard.set(tab, []);
  }
  hear(tab: unknown, message: FromTab): void {
    this.heard.get(tab)?.push(message);
    if (message.say === "goodbye") this.sends.delete(tab);
  }
  close(): void {
    this.closed = true;
  }
}

async function until(holds: () => boolean, what: string): Promise<void> {
  for (let tries = 0; !holds(); tries++) {
    assert.ok(tries < 500, `never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test("one tab leads, all hear it, and the next one takes over with what everybody has open", async () => {
  const boards: Made[] = [];
  const told: Record<string, string[]> = { a: [], b: [], c: [] };
  const tab = (name: string): Elected =>
    new Elected(
      "tabs-test",
      {
        channel: new BroadcastChannel("tabs-test"),
        locks: navigator.locks,
        board: ({ missed }) => boards[boards.push(new Made(missed)) - 1]!,
      },
      (message) => told[name]!.push(message.say),
      name,
    );
  const tabs = { a: tab("a"), b: tab("b"), c: tab("c") };
  const [first] = await until(() => boards[0]?.sends.size === 3, "all three are with the first leader").then(
    () => boards,
  );
  assert.deepEqual([boards.length, first!.missed], [1, false]);
  const leader = [...first!.sends.keys()][0] as "a" | "b" | "c";
  const others = (["a", "b", "c"] as const).filter((name) => name !== leader);
  for (const name of others) tabs[name].say({ say: "open", taskIds: [name] });
  await until(() => others.every((name) => first!.heard.get(name)?.length === 1), "what is open is told to the leader");
  for (const send of first!.sends.values()) send({ say: "reload" });
  await until(() => Object.values(told).every((each) => each.length === 1), "each tab hears what the leader hears");

  tabs[leader].say({ say: "goodbye" });
  await until(() => boards[1]?.sends.size === 2, "another takes over, and the third comes to it");
  const second = boards[1]!;
  assert.deepEqual([first!.closed, second.missed], [true, true]);
  await until(
    () => others.every((name) => second.heard.get(name)?.some((said) => said.say === "open")),
    "what was open is known to the second leader",
  );
  const follower = [...second.sends.keys()][1] as "a" | "b" | "c";
  tabs[follower].say({ say: "goodbye" });
  await until(() => second.heard.get(follower)?.at(-1)?.say === "goodbye", "a tab that went is noticed by its lock");
  tabs[others.find((name) => name !== follower)!].say({ say: "goodbye" });
  assert.equal(boards.length, 2);
});

test("what changed while one was away is counted until it is caught up with, each task once", () => {
  let away = withNews(HERE, "x", 0);
  assert.equal(away, HERE, "nobody is away");
  away = hidden(1000);
  away = withNews(withNews(withNews(away, "x", 2000), "y", 3000), "x", 4000);
  assert.equal(saidOf(away), undefined, "nothing is said to who is away");
  away = returned(away, 60_000);
  away = withNews(away, "z", 60_000 + CATCH_UP_MS);
  away = withNews(away, "later", 60_001 + CATCH_UP_MS);
  assert.deepEqual(saidOf(away), {
    text: "3 tasks changed while you were away.",
    since: new Date(1000).toISOString(),
  });
  assert.equal(saidOf(returned(hidden(0), 60_000)), undefined, "nothing has happened");
  assert.equal(returned(withNews(hidden(0), "x", 1), 2000), HERE, "a glance elsewhere is none");
  assert.match(saidOf(withNews(returned(hidden(0), 9000), "many", 9000))!.text, /^Many tasks/);
});

test("why is a sentence, with its time", () => {
  const retry = {
    message: "its last attempt failed; it is tried again at the time given",
    details: { until: new Date(90_000).toISOString() },
  };
  assert.equal(sentenceOf(retry, 0), "Its last attempt failed; it is tried again, in 1 min");
  assert.equal(sentenceOf({ message: "no worker serves it", details: {} }, 0), "No worker serves it");
});
