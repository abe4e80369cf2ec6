/** Two texts line by line: what both have, what the first alone has, what the second alone has. */

export interface Line {
  sign: " " | "-" | "+";
  text: string;
}

/** Longer texts are shown one after the other: the table below grows with the product of both. */
const MOST = 1500;

export function difference(before: string, after: string): Line[] {
  const a = before.split("\n");
  const b = after.split("\n");
  if (before === after) return a.map((text) => ({ sign: " ", text }));
  if (a.length > MOST || b.length > MOST)
    return [...a.map((text) => ({ sign: "-", text }) as const), ...b.map((text) => ({ sign: "+", text }) as const)];
  const common = longestCommon(a, b);
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ sign: " ", text: a[i]! });
      i += 1;
      j += 1;
    } else if (i < a.length && (j >= b.length || common[i + 1]![j]! >= common[i]![j + 1]!))
      lines.push({ sign: "-", text: a[i++]! });
    else lines.push({ sign: "+", text: b[j++]! });
  }
  return lines;
}

/** `[i][j]`: how many lines the rests from there on have in common, in their order. */
function longestCommon(a: readonly string[], b: readonly string[]): Uint16Array[] {
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      table[i]![j] = a[i] === b[j] ? table[i + 1]![j + 1]! + 1 : Math.max(table[i + 1]![j]!, table[i]![j + 1]!);
  return table;
}
