import { readLiteral } from "./literals.ts";
import { isRecord } from "./reading.ts";

const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Arguments with the types that the schema names; values that fit no type stay as they are written. */
export function typed(
  args: Readonly<Record<string, unknown>>,
  schema: unknown,
): Readonly<Record<string, unknown>> {
  const properties = isRecord(schema) && isRecord(schema["properties"]) ? schema["properties"] : undefined;
  if (properties === undefined) return args;
  return Object.fromEntries(
    Object.entries(args).map(([key, value]) => [
      key,
      Object.hasOwn(properties, key) ? typedValue(value, properties[key]) : value,
    ]),
  );
}

function typedValue(value: unknown, schema: unknown): unknown {
  if (!isRecord(schema)) return value;
  const types = typesOf(schema);
  if (typeof value === "string") {
    if (types.has("string")) return value;
    return typedMembers(fromText(value.trim(), types, value), schema);
  }
  return typedMembers(value, schema);
}

function typedMembers(value: unknown, schema: Readonly<Record<string, unknown>>): unknown {
  if (Array.isArray(value) && schema["items"] !== undefined)
    return value.map((each) => typedValue(each, schema["items"]));
  return isRecord(value) ? typed(value, schema) : value;
}

function typesOf(schema: Readonly<Record<string, unknown>>): ReadonlySet<string> {
  const types = new Set<string>();
  const add = (type: unknown): void => {
    for (const each of Array.isArray(type) ? type : [type]) if (typeof each === "string") types.add(each);
  };
  add(schema["type"]);
  for (const key of ["anyOf", "oneOf"])
    for (const each of Array.isArray(schema[key]) ? schema[key] : []) if (isRecord(each)) add(each["type"]);
  const choices = schema["enum"];
  if (Array.isArray(choices) && choices.some((each) => typeof each === "string")) types.add("string");
  return types;
}

function fromText(text: string, types: ReadonlySet<string>, asWritten: string): unknown {
  if (types.has("boolean") && /^(?:true|false)$/i.test(text)) return text.toLowerCase() === "true";
  if (types.has("integer") || types.has("number")) {
    const number = NUMBER.test(text) ? Number(text) : Number.NaN;
    if (types.has("number") ? Number.isFinite(number) : Number.isSafeInteger(number)) return number;
  }
  if (types.has("null") && /^(?:null|none)$/i.test(text)) return null;
  const opener = text[0];
  if ((types.has("array") && opener === "[") || (types.has("object") && opener === "{")) {
    const read = readLiteral(text, 0);
    if (read.ok && !read.repaired && read.end === text.length) return read.value;
  }
  return asWritten;
}
