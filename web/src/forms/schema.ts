/** A form out of a JSON Schema: which fields, and their values as the text of a payload. */

export type Schema = { [name: string]: unknown };

export type FieldKind = "line" | "text" | "number" | "choice" | "json" | "picture";

export interface Field {
  name: string;
  kind: FieldKind;
  required: boolean;
  description: string;
  /** What it is if nobody says anything. */
  fallback: string;
  choices: string[];
  min: number | undefined;
  max: number | undefined;
  step: number | "any";
}

/** Longer than this wants more than a line. */
const A_LINE = 1000;
/** Files of ours and addresses elsewhere, which one would rather see. */
const PICTURES = new Set(["source_image"]);
const LONG = new Set(["prompt", "content", "instructions", "system_prompt", "text"]);

/** Required ones first, in the schema's own order. */
export function fieldsOf(schema: Schema): Field[] {
  const properties = (schema["properties"] ?? {}) as Record<string, Schema>;
  const required = new Set((schema["required"] ?? []) as string[]);
  const fields = Object.entries(properties).map(([name, one]) => fieldOf(name, one, required.has(name), schema));
  return fields.sort((a, b) => Number(b.required) - Number(a.required) || weight(a) - weight(b));
}

function fieldOf(name: string, declared: Schema, required: boolean, root: Schema): Field {
  const schema = narrowed(declared, root);
  const choices = choicesOf(schema);
  const kind = kindOf(name, schema, choices);
  return {
    name,
    kind,
    required,
    description: String(schema["description"] ?? declared["description"] ?? "").replaceAll("`", ""),
    fallback: declared["default"] === undefined || declared["default"] === null ? "" : shown(declared["default"]),
    choices,
    min: numberIn(schema["minimum"]),
    max: numberIn(schema["maximum"]),
    step: schema["type"] === "integer" ? 1 : "any",
  };
}

/** A reference followed, and `null` left out: what is not said is null anyway. */
function narrowed(schema: Schema, root: Schema): Schema {
  if (typeof schema["$ref"] === "string") {
    const path = schema["$ref"].replace(/^#\//, "").split("/");
    const found = path.reduce<unknown>((at, name) => (at as Schema | undefined)?.[name], root);
    return found ? { ...(found as Schema), ...without(schema, "$ref") } : {};
  }
  const several = (schema["anyOf"] ?? schema["oneOf"]) as Schema[] | undefined;
  const real = several?.filter((each) => each["type"] !== "null") ?? [];
  return real.length === 1 ? { ...without(schema, "anyOf", "oneOf"), ...narrowed(real[0]!, root) } : schema;
}

function without(schema: Schema, ...names: string[]): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => !names.includes(name)));
}

function choicesOf(schema: Schema): string[] {
  if (schema["type"] === "boolean") return ["true", "false"];
  if (schema["const"] !== undefined) return [shown(schema["const"])];
  return Array.isArray(schema["enum"]) ? schema["enum"].map(shown) : [];
}

function kindOf(name: string, schema: Schema, choices: string[]): FieldKind {
  if (choices.length) return "choice";
  if (schema["type"] === "number" || schema["type"] === "integer") return "number";
  if (schema["type"] !== "string") return "json";
  if (PICTURES.has(name)) return "picture";
  return LONG.has(name) || (numberIn(schema["maxLength"]) ?? 0) > 5 * A_LINE ? "text" : "line";
}

function weight(field: Field): number {
  return { picture: -1, json: 1 }[field.kind as string] ?? 0;
}

function numberIn(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The payload's text, member by member, so that a number too big for JavaScript stays what was typed; and what is wrong. */
export function payloadText(
  fields: readonly Field[],
  values: Readonly<Record<string, string>>,
): { text: string; faults: Record<string, string> } {
  const members: string[] = [];
  const faults: Record<string, string> = {};
  for (const field of fields) {
    const value = values[field.name] ?? "";
    if (value.trim() === "") {
      if (field.required) faults[field.name] = "is needed";
      continue;
    }
    const text = textOf(field, value);
    if (text === undefined) faults[field.name] = field.kind === "number" ? "is no number" : "is no JSON";
    else members.push(`${JSON.stringify(field.name)}: ${text}`);
  }
  return { text: `{${members.join(", ")}}`, faults };
}

function textOf(field: Field, value: string): string | undefined {
  const isPlain = field.kind === "choice" && !/^(true|false|-?\d+(\.\d+)?)$/.test(value);
  if (field.kind === "line" || field.kind === "text" || field.kind === "picture" || isPlain)
    return JSON.stringify(value);
  try {
    const read: unknown = JSON.parse(value);
    return field.kind === "number" && typeof read !== "number" ? undefined : value.trim();
  } catch {
    return undefined;
  }
}

/** A payload's members, as they were sent, as what the form shows. */
export function valuesOf(fields: readonly Field[], members: Readonly<Record<string, string>>): Record<string, string> {
  const values: Record<string, string> = {};
  for (const { name, kind, fallback } of fields) {
    const text = members[name];
    if (text === undefined || text === "null") values[name] = text === undefined && kind !== "json" ? fallback : "";
    else values[name] = kind === "json" || !text.startsWith('"') ? text : (JSON.parse(text) as string);
  }
  return values;
}
