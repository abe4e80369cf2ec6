/** JSON as text, never parsed into numbers: 2^60 is shown as it was sent. */

/** The members of an object's text, each as the text that it was sent as. */
export function membersOf(text: string): Record<string, string> {
  const members: Record<string, string> = {};
  let at = skipSpace(text, skipSpace(text, 0) + 1);
  while (at < text.length && text[at] === '"') {
    const nameEnd = endOfValue(text, at);
    const name = JSON.parse(text.slice(at, nameEnd)) as string;
    const start = skipSpace(text, skipSpace(text, nameEnd) + 1);
    const end = endOfValue(text, start);
    members[name] = text.slice(start, end);
    at = skipSpace(text, end);
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return members;
}

/** The same text with a line for each member, two spaces deeper for each level. */
export function indented(text: string): string {
  const out: string[] = [];
  let depth = 0;
  const line = (): void => void out.push("\n", "  ".repeat(depth));
  for (let at = skipSpace(text, 0); at < text.length; at = skipSpace(text, at)) {
    const sign = text[at]!;
    if (sign === "{" || sign === "[") {
      const next = skipSpace(text, at + 1);
      if (text[next] === "}" || text[next] === "]") {
        out.push(sign, text[next]!);
        at = next + 1;
        continue;
      }
      out.push(sign);
      depth += 1;
      line();
      at += 1;
    } else if (sign === "}" || sign === "]") {
      depth = Math.max(0, depth - 1);
      line();
      out.push(sign);
      at += 1;
    } else if (sign === ",") {
      out.push(sign);
      line();
      at += 1;
    } else if (sign === ":") {
      out.push(": ");
      at += 1;
    } else {
      const end = endOfValue(text, at);
      out.push(text.slice(at, end));
      at = end;
    }
  }
  return out.join("");
}

function skipSpace(text: string, at: number): number {
  while (at < text.length && " \t\n\r".includes(text[at]!)) at += 1;
  return at;
}

/** Behind the value that begins here; always at least one further, whatever the text is. */
function endOfValue(text: string, start: number): number {
  const first = text[start];
  if (first === '"') {
    let at = start + 1;
    while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
    return at + 1;
  }
  if (first !== "{" && first !== "[") {
    let at = start + 1;
    while (at < text.length && !",:]} \t\n\r".includes(text[at]!)) at += 1;
    return at;
  }
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const sign = text[at]!;
    if (sign === '"') at = endOfValue(text, at) - 1;
    else if (sign === "{" || sign === "[") depth += 1;
    else if ((sign === "}" || sign === "]") && --depth === 0) return at + 1;
  }
  return text.length;
}
