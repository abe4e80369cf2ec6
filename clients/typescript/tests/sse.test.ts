import assert from "node:assert/strict";
import { test } from "node:test";
import { Parser } from "../src/sse.ts";

const TEXT = "retry: 40\nid: 1\nevent: output\ndata: a\ndata: b\n\n: ping\n\nid: 2\r\ndata: c\r\n\r\nid: 3\n\n";

test("however the text is cut, the same messages come out", () => {
  for (let size = 1; size <= TEXT.length; size++) {
    const parser = new Parser();
    const found = [];
    for (let at = 0; at < TEXT.length; at += size) found.push(...parser.feed(TEXT.slice(at, at + size)));
    assert.deepEqual(found, [
      { id: "1", event: "output", data: "a\nb" },
      { id: "2", event: "message", data: "c" },
    ]);
    assert.equal(parser.place, "3", "an id without data is a place to come back to");
    assert.equal(parser.retryMs, 40);
  }
});

test("a line separator of Unicode ends no line", () => {
  assert.deepEqual([...new Parser().feed("data: a\u2028b\n\n")], [{ id: "", event: "message", data: "a\u2028b" }]);
});

test("the place of a message under way does not count", () => {
  const parser = new Parser();
  assert.deepEqual([...parser.feed("id: 7\ndata: half")], []);
  assert.equal(parser.place, "");
});
