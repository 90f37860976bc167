import type { JsonSchema } from "../../core/model-provider.ts";
import { isFields } from "../../core/text/json-values.ts";
import { visible } from "../../core/text/visible.ts";

/**
 * A server's JSON Schema, rewritten from its known parts: references within it are resolved, everything that models and
 * validators do not need is dropped, and depth and size are bounded. The model gets `schema`; arguments are checked
 * against `check`, which contains nothing that could take long (patterns, formats).
 */

export interface PlainSchemas {
  readonly schema: JsonSchema;
  readonly check: JsonSchema;
}

const DEEPEST = 16;
const MOST_NODES = 2000;
const MOST_CHARACTERS = 32 * 1024;
const LONGEST_TEXT = 400;
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
/** Not allowed at the top level of a model's schema: some APIs refuse the whole request. */
const NOT_ON_TOP: ReadonlySet<string> = new Set(["anyOf", "oneOf", "allOf", "not", "enum", "const"]);

class Unfit extends Error {}

export function plainSchema(given: unknown): PlainSchemas | { readonly why: string } {
  try {
    if (!isFields(given) || (given["type"] !== undefined && given["type"] !== "object"))
      throw new Unfit("its arguments are not an object");
    const whole = new Copy(given).schema(given, 0, []);
    if (!isFields(whole)) throw new Unfit("its arguments are not an object");
    const properties = isFields(whole["properties"]) ? whole["properties"] : {};
    const top = { ...whole, type: "object", properties };
    if (JSON.stringify(top).length > MOST_CHARACTERS) throw new Unfit("its schema is too large");
    return {
      schema: Object.fromEntries(Object.entries(top).filter(([key]) => !NOT_ON_TOP.has(key))),
      check: withoutWords(top) as JsonSchema,
    };
  } catch (thrown) {
    if (thrown instanceof Unfit) return { why: thrown.message };
    throw thrown;
  }
}

/** One copy, with its remaining budget. */
class Copy {
  readonly #root: Readonly<Record<string, unknown>>;
  #nodes = 0;

  constructor(root: Readonly<Record<string, unknown>>) {
    this.#root = root;
  }

  schema(given: unknown, depth: number, refs: readonly string[]): unknown {
    this.#spend(depth);
    if (typeof given === "boolean") return given;
    if (!isFields(given)) throw new Unfit("a part of its schema is not a schema");
    const ref = given["$ref"];
    if (ref !== undefined) return this.#referred(given, ref, depth, refs);
    const found = Object.entries(KEYWORDS).flatMap(([key, kind]) => {
      const value = this.#value(kind, Object.hasOwn(given, key) ? given[key] : undefined, depth, refs);
      return value === undefined ? [] : [[key, value] as const];
    });
    return Object.fromEntries(found);
  }

  /** A schema that refers to itself accepts anything from that point on. */
  #referred(
    given: Readonly<Record<string, unknown>>,
    ref: unknown,
    depth: number,
    refs: readonly string[],
  ): unknown {
    if (typeof ref !== "string" || !ref.startsWith("#"))
      throw new Unfit("its schema refers to another document");
    if (refs.includes(ref)) return {};
    const target = this.schema(this.#at(ref), depth + 1, [...refs, ref]);
    const { $ref: _, ...siblings } = given;
    const own = this.schema(siblings, depth + 1, refs);
    return isFields(target) && isFields(own) ? { ...target, ...own } : target;
  }

  #at(ref: string): unknown {
    let at: unknown = this.#root;
    for (const step of ref.slice(1).split("/").slice(1)) {
      const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
      if (typeof at !== "object" || at === null || !Object.hasOwn(at, key))
        throw new Unfit("its schema refers to a part that does not exist");
      at = Reflect.get(at, key) as unknown;
    }
    return at;
  }

  #value(kind: Kind, given: unknown, depth: number, refs: readonly string[]): unknown {
    if (given === undefined) return undefined;
    switch (kind) {
      case "schema":
        return Array.isArray(given) ? undefined : this.schema(given, depth + 1, refs);
      case "schemas":
        return listOf(given).map((each) => this.schema(each, depth + 1, refs));
      case "properties":
        return this.#properties(given, depth, refs);
      case "names":
        return listOf(given).filter((each) => typeof each === "string");
      case "data":
        return this.#data(given, depth + 1);
      case "text":
        return typeof given === "string" ? shown(given) : undefined;
      case "number":
        return typeof given === "number" ? given : undefined;
      case "switch":
        return typeof given === "boolean" ? given : undefined;
      case "type":
        return typeOf(given);
    }
  }

  #properties(given: unknown, depth: number, refs: readonly string[]): unknown {
    if (!isFields(given)) throw new Unfit("its properties are not an object");
    const rows = Object.entries(given).map(([name, value]) => {
      if (!ARGUMENT.test(name) || name === "__proto__")
        throw new Unfit("an argument has a name that models cannot write");
      return [name, this.schema(value, depth + 1, refs)] as const;
    });
    return Object.fromEntries(rows);
  }

  /** Data has to be passed on exactly, so hidden characters cannot be made visible. */
  #data(given: unknown, depth: number): unknown {
    this.#spend(depth);
    if (Array.isArray(given)) return given.map((each) => this.#data(each, depth + 1));
    if (isFields(given))
      return Object.fromEntries(
        Object.entries(given).map(([key, value]) => [this.#data(key, depth), this.#data(value, depth + 1)]),
      );
    if (typeof given === "string" && visible(given) !== given)
      throw new Unfit("its schema has a value with hidden characters");
    return given;
  }

  #spend(depth: number): void {
    this.#nodes += 1;
    if (depth > DEEPEST) throw new Unfit("its schema is nested too deep");
    if (this.#nodes > MOST_NODES) throw new Unfit("its schema is too large");
  }
}

function typeOf(given: unknown): unknown {
  if (TYPES.has(given)) return given;
  if (Array.isArray(given) && given.length > 0 && given.every((each) => TYPES.has(each)))
    return [...new Set<unknown>(given)];
  throw new Unfit("its schema names an unknown type");
}

function listOf(given: unknown): readonly unknown[] {
  if (Array.isArray(given)) return given;
  throw new Unfit("its schema has something else where a list is required");
}

const shown = (text: string): string =>
  visible(text.slice(0, LONGEST_TEXT).toWellFormed()).slice(0, LONGEST_TEXT);

/** Removes keywords that only explain, in every subschema. */
function withoutWords(schema: unknown): unknown {
  if (!isFields(schema)) return schema;
  const rows = Object.entries(schema)
    .filter(([key]) => !FOR_MODELS_ONLY.has(key))
    .map(([key, value]) => {
      const kind = KEYWORDS[key];
      if (kind === "schema") return [key, withoutWords(value)] as const;
      if (kind === "schemas" && Array.isArray(value)) return [key, value.map(withoutWords)] as const;
      if (kind === "properties" && isFields(value))
        return [
          key,
          Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withoutWords(one)])),
        ] as const;
      return [key, value] as const;
    });
  return Object.fromEntries(rows);
}
