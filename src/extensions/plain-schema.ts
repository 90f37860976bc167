import type { JsonSchema } from "../core/model-provider.ts";
import { isFields, percentDecoded } from "../core/raw-data.ts";
import { visible } from "../core/visible.ts";

/**
 * A server's JSON Schema, rewritten from its known parts: references within it are resolved, everything that models and
 * validators do not need is dropped, and depth and size are bounded. The model gets `schema`; arguments are checked
 * against `check`, which contains nothing that could take long (patterns, formats).
 */

interface PlainSchemas {
  readonly schema: JsonSchema;
  readonly check: JsonSchema;
}

/** What may still be read of all tools of a server together; it is also spent on tools that are then left out. */
export interface NodeBudget {
  nodes: number;
}

const MAX_DEPTH = 16;
const MAX_NODES = 2000;
export const MAX_NODES_OF_ALL = 100_000;
const MAX_CHARACTERS = 32 * 1024;
const MAX_TEXT_LENGTH = 400;
/** The form that model APIs require for argument names. */
const ARGUMENT = /^[A-Za-z0-9_.-]{1,64}$/;
const TYPES: ReadonlySet<unknown> = new Set([
  "string",
  "number",
  "integer",
  "boolean",
  "array",
  "object",
  "null",
]);

type Kind = "schema" | "schemas" | "properties" | "names" | "data" | "text" | "number" | "switch" | "type";

/** The keywords that are kept; all others are ignored. */
const KEYWORDS: Readonly<Record<string, Kind>> = {
  type: "type",
  description: "text",
  format: "text",
  pattern: "text",
  enum: "data",
  const: "data",
  default: "data",
  properties: "properties",
  required: "names",
  items: "schema",
  additionalProperties: "schema",
  not: "schema",
  anyOf: "schemas",
  oneOf: "schemas",
  allOf: "schemas",
  prefixItems: "schemas",
  minimum: "number",
  maximum: "number",
  exclusiveMinimum: "number",
  exclusiveMaximum: "number",
  minLength: "number",
  maxLength: "number",
  minItems: "number",
  maxItems: "number",
  minProperties: "number",
  maxProperties: "number",
  uniqueItems: "switch",
};

const FOR_MODELS_ONLY: ReadonlySet<string> = new Set(["description", "format", "pattern", "default"]);
/** Keywords that mean the same in a copy; one that only describes changes nothing either. */
const EXACT: ReadonlySet<string> = new Set([
  ...Object.keys(KEYWORDS).filter((key) => key !== "pattern" && key !== "format"),
  "title",
  "examples",
  "deprecated",
  "$schema",
  "$id",
  "$comment",
  "$defs",
  "definitions",
]);
/** Not allowed at the top level of a model's schema: some APIs refuse the whole request. */
const NOT_ON_TOP: ReadonlySet<string> = new Set(["anyOf", "oneOf", "allOf", "not", "enum", "const"]);

class Unfit extends Error {}

export function plainSchema(schema: unknown, budget: NodeBudget): PlainSchemas | { readonly why: string } {
  try {
    if (!isFields(schema) || (schema["type"] !== undefined && schema["type"] !== "object"))
      throw new Unfit("its arguments are not an object");
    const copy = new Copy(schema, budget);
    const whole = copy.schema(schema, 0, []);
    if (!isFields(whole)) throw new Unfit("its arguments are not an object");
    const properties = isFields(whole["properties"]) ? whole["properties"] : {};
    const top = { ...whole, type: "object", properties };
    if (JSON.stringify(top).length > MAX_CHARACTERS) throw new Unfit("its schema is too large");
    return {
      schema: Object.fromEntries(Object.entries(top).filter(([key]) => !NOT_ON_TOP.has(key))),
      check: withoutWords(top, copy.inexact) as JsonSchema,
    };
  } catch (thrown) {
    if (thrown instanceof Unfit) return { why: thrown.message };
    throw thrown;
  }
}

/** One copy, with its remaining budget. */
class Copy {
  readonly #root: Readonly<Record<string, unknown>>;
  readonly #budget: NodeBudget;
  #nodes = 0;
  /** Copies that accept more than what they were copied from, at least when arguments are checked. */
  readonly inexact = new WeakSet<object>();

  constructor(root: Readonly<Record<string, unknown>>, budget: NodeBudget) {
    this.#root = root;
    this.#budget = budget;
  }

  schema(schema: unknown, depth: number, refs: readonly string[]): unknown {
    this.#spend(depth);
    if (typeof schema === "boolean") return schema;
    if (!isFields(schema)) throw new Unfit("a part of its schema is not a schema");
    const ref = schema["$ref"];
    if (ref !== undefined) return this.#referred(schema, ref, depth, refs);
    const found = Object.entries(KEYWORDS).flatMap(([key, kind]) => {
      const value = this.#value(kind, Object.hasOwn(schema, key) ? schema[key] : undefined, depth, refs);
      return value === undefined ? [] : [[key, value] as const];
    });
    const copy: Record<string, unknown> = Object.fromEntries(found);
    // Without the patterns of names, it would refuse names that they allow.
    if (Object.hasOwn(schema, "patternProperties")) delete copy["additionalProperties"];
    const isExact = Object.keys(schema).every((key) => EXACT.has(key));
    if (!isExact || this.#hasInexact(found)) this.inexact.add(copy);
    return copy;
  }

  #hasInexact(found: readonly (readonly [key: string, value: unknown])[]): boolean {
    const isInexact = (value: unknown): boolean =>
      typeof value === "object" && value !== null && this.inexact.has(value);
    return found.some(([key, value]) => {
      const kind = KEYWORDS[key];
      if (kind === "schema") return isInexact(value);
      if (kind !== "schemas" && kind !== "properties") return false;
      return Object.values(value as object).some(isInexact);
    });
  }

  /** A schema that refers to itself accepts anything from that point on. */
  #referred(
    schema: Readonly<Record<string, unknown>>,
    ref: unknown,
    depth: number,
    refs: readonly string[],
  ): unknown {
    if (typeof ref !== "string" || !ref.startsWith("#"))
      throw new Unfit("its schema refers to another document");
    if (refs.includes(ref)) return this.#marked({});
    const target = this.schema(this.#at(ref), depth + 1, [...refs, ref]);
    const { $ref: _, ...siblings } = schema;
    const own = this.schema(siblings, depth + 1, refs);
    if (!isFields(target) || !isFields(own)) return target;
    const both = { ...target, ...own };
    return this.inexact.has(target) || this.inexact.has(own) ? this.#marked(both) : both;
  }

  #marked(copy: object): object {
    this.inexact.add(copy);
    return copy;
  }

  /** Pointers only: names that a schema gives its parts (`$anchor`) are not looked up. */
  #at(ref: string): unknown {
    let at: unknown = this.#root;
    const [first, ...steps] = ref.slice(1).split("/");
    if (first !== "") throw new Unfit("its schema refers to a part that does not exist");
    for (const step of steps) {
      const key = unescaped(step).replaceAll("~1", "/").replaceAll("~0", "~");
      if (typeof at !== "object" || at === null || !Object.hasOwn(at, key))
        throw new Unfit("its schema refers to a part that does not exist");
      at = Reflect.get(at, key) as unknown;
    }
    return at;
  }

  #value(kind: Kind, value: unknown, depth: number, refs: readonly string[]): unknown {
    if (value === undefined) return undefined;
    switch (kind) {
      case "schema":
        return Array.isArray(value) ? undefined : this.schema(value, depth + 1, refs);
      case "schemas":
        return listOf(value).map((each) => this.schema(each, depth + 1, refs));
      case "properties":
        return this.#properties(value, depth, refs);
      case "names":
        return listOf(value).filter((each) => typeof each === "string");
      case "data":
        return this.#data(value, depth + 1);
      case "text":
        return typeof value === "string" ? boundedText(value) : undefined;
      case "number":
        return typeof value === "number" ? value : undefined;
      case "switch":
        return typeof value === "boolean" ? value : undefined;
      case "type":
        return typeOf(value);
    }
  }

  #properties(properties: unknown, depth: number, refs: readonly string[]): unknown {
    if (!isFields(properties)) throw new Unfit("its properties are not an object");
    const rows = Object.entries(properties).map(([name, value]) => {
      if (!ARGUMENT.test(name) || name === "__proto__")
        throw new Unfit("an argument has a name that models cannot write");
      return [name, this.schema(value, depth + 1, refs)] as const;
    });
    return Object.fromEntries(rows);
  }

  /** Data has to be passed on exactly, so hidden characters cannot be made visible. */
  #data(data: unknown, depth: number): unknown {
    this.#spend(depth);
    if (Array.isArray(data)) return data.map((each) => this.#data(each, depth + 1));
    if (isFields(data))
      return Object.fromEntries(
        Object.entries(data).map(([key, value]) => [this.#data(key, depth), this.#data(value, depth + 1)]),
      );
    if (typeof data === "string" && visible(data) !== data)
      throw new Unfit("its schema has a value with hidden characters");
    return data;
  }

  #spend(depth: number): void {
    this.#nodes += 1;
    this.#budget.nodes -= 1;
    if (depth > MAX_DEPTH) throw new Unfit("its schema is nested too deep");
    if (this.#nodes > MAX_NODES) throw new Unfit("its schema is too large");
  }
}

function typeOf(type: unknown): unknown {
  if (TYPES.has(type)) return type;
  if (Array.isArray(type) && type.length > 0 && type.every((each) => TYPES.has(each)))
    return [...new Set<unknown>(type)];
  throw new Unfit("its schema names an unknown type");
}

function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new Unfit("its schema has something else where a list is required");
}

const boundedText = (text: string): string =>
  visible(text.slice(0, MAX_TEXT_LENGTH).toWellFormed()).slice(0, MAX_TEXT_LENGTH);

/** A pointer after `#` is part of an address, so its characters may be written in percent. */
const unescaped = (step: string): string => percentDecoded(step) ?? step;

/**
 * Removes keywords that only explain or are not checked, in every subschema. Where one is missing, "not" would refuse
 * and "oneOf" would find several for what the whole schema accepts.
 */
function withoutWords(schema: unknown, inexact: WeakSet<object>): unknown {
  if (!isFields(schema)) return schema;
  const isInexact = (value: unknown): boolean =>
    typeof value === "object" && value !== null && inexact.has(value);
  const rows = Object.entries(schema)
    .filter(([key, value]) => !FOR_MODELS_ONLY.has(key) && !(key === "not" && isInexact(value)))
    .map(([key, value]) => {
      const kind = KEYWORDS[key];
      if (kind === "schema") return [key, withoutWords(value, inexact)] as const;
      if (kind === "schemas" && Array.isArray(value)) {
        const each = value.map((one) => withoutWords(one, inexact));
        return key === "oneOf" && value.some(isInexact) ? ["anyOfThese", each] : [key, each];
      }
      if (kind === "properties" && isFields(value))
        return [
          key,
          Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withoutWords(one, inexact)])),
        ] as const;
      return [key, value] as const;
    });
  const { anyOfThese, ...others } = Object.fromEntries(rows) as Record<string, unknown>;
  if (anyOfThese === undefined) return others;
  const all = Array.isArray(others["allOf"]) ? (others["allOf"] as readonly unknown[]) : [];
  return { ...others, allOf: [...all, { anyOf: anyOfThese }] };
}
