/** What no reviewer should have to look for: no markup out of data, and everything drawn with the same few colours and sizes. */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const SOURCES = new URL("../src/", import.meta.url);
const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.(svelte|ts|css)$/.test(name))
  .map((name) => ({ name, text: readFileSync(new URL(name, SOURCES), "utf8") }));
const BASE = "styles/app.css";
const styles = files.flatMap(({ name, text }) => {
  const css = name.endsWith(".css") ? text : (/<style>([\s\S]*)<\/style>/.exec(text)?.[1] ?? "");
  return css ? [{ name, css: css.replace(/\/\*[\s\S]*?\*\//g, "") }] : [];
});
const base = styles.find(({ name }) => name === BASE)!.css;
const root = /:root\s*\{([\s\S]*?)\}/.exec(base)![1]!;
const elsewhere = styles.map(({ name, css }) => ({ name, css: name === BASE ? css.replace(root, "") : css }));

/** Every hit with its file. */
function hits(where: readonly { name: string; css: string }[], pattern: RegExp): string[] {
  return where.flatMap(({ name, css }) => [...css.matchAll(pattern)].map(([found]) => `${name}: ${found}`));
}

test("nothing that came from elsewhere is ever markup", () => {
  const texts = files.map(({ name, text }) => ({ name, css: text.replace(/<!--[\s\S]*?-->|\/\*[\s\S]*?\*\//g, "") }));
  assert.deepEqual(hits(texts, /\{@html|\.innerHTML|\.outerHTML|insertAdjacentHTML|document\.write/g), []);
});

test("no inline style or script, which the page's own policy would refuse", () => {
  const markup = files
    .filter(({ name }) => name.endsWith(".svelte"))
    .map(({ name, text }) => ({ name, css: text.replace(/<script[\s\S]*?<\/script>|<style>[\s\S]*?<\/style>/g, "") }));
  assert.deepEqual(hits(markup, /\sstyle=|\stransition:|\s(?:in|out|animate):\w|javascript:/g), []);
});

test("both themes are ten named colours, and nothing is drawn in another", () => {
  const colours = [...root.matchAll(/--(\w+):\s*light-dark\(#[0-9a-f]{6}, #[0-9a-f]{6}\)/g)].map(([, name]) => name);
  assert.equal(colours.length, 10, colours.join());
  const named = /(?<![-\w])(?:white|black|red|green|blue|gr[ae]y|silver|orange|yellow|purple)(?![-\w(])/g;
  assert.deepEqual(hits(elsewhere, /#[0-9a-f]{3,8}\b|\b(?:rgba?|hsla?|oklch|oklab|lab|lch|light-dark)\(/gi), []);
  assert.deepEqual(hits(elsewhere, named), []);
});

test("text has one of five sizes", () => {
  const sizes = [...root.matchAll(/--(tiny|small|text|large|huge):/g)].map(([, name]) => name);
  assert.equal(sizes.length, 5);
  const set = styles.flatMap(({ name, css }) =>
    [...css.matchAll(/font(?:-size)?:\s*([^;]+);/g)].map(([, value]) => ({ name, value: value! })),
  );
  const odd = set.filter(({ value }) => value !== "inherit" && !/^var\(--(?:tiny|small|text|large|huge)\)/.test(value));
  assert.deepEqual(odd, []);
});

test("space is a multiple of one unit", () => {
  const odd = styles.flatMap(({ name, css }) =>
    [...css.matchAll(/(?<![-\w])(?:padding|margin|gap|row-gap)(?:-\w+)?:\s*([^;]+);/g)]
      .filter(([, value]) => /[\d.]+(?:rem|em|px)/.test(value!.replace(/(?<![\d.])[12]px/g, "")))
      .map(([whole]) => `${name}: ${whole}`),
  );
  assert.deepEqual(odd, []);
});

test("every file of code says what it is for in its first line", () => {
  const silent = files.filter(
    ({ name, text }) => !name.endsWith(".css") && name !== "main.ts" && !/^(?:<!-- |\/\*\* )[A-ZÀ-Ý]/.test(text),
  );
  assert.deepEqual(
    silent.map(({ name }) => name),
    [],
  );
});
