/** JSON Schemas that others wrote: compiled for the draft that they name, so that no value takes for ever to check. */
import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import { reasonOf } from "../core/errors.ts";
import type { JsonSchema } from "../core/model-provider.ts";
import { isFields, percentDecoded } from "../core/raw-data.ts";

type Draft = new (options: object) => Pick<Ajv2020, "compile">;

const draft7 = async (): Promise<Draft> => (await import("ajv")).Ajv;

/** Keyed by `$schema` without `http(s)` and its `#`. Every keyword of draft 6 means the same in draft 7. */
const DRAFTS: Readonly<Record<string, () => Promise<Draft>>> = {
  "json-schema.org/draft-06/schema": draft7,
  "json-schema.org/draft-07/schema": draft7,
  "json-schema.org/draft/2019-09/schema": async () => (await import("ajv/dist/2019.js")).Ajv2019,
  "json-schema.org/draft/2020-12/schema": () => Promise.resolve(Ajv2020),
};

const DRAFT = "https://json-schema.org/draft/2020-12/schema";

/** What is wrong with a value; empty if it fits. */
type Check = (value: unknown) => readonly SchemaError[];
type SchemaError = Pick<ErrorObject, "instancePath" | "message" | "params">;

/** The check for a schema; rejects with what is wrong with the schema. */
export async function compiledSchema(
  { $schema = DRAFT, ...schema }: JsonSchema,
  { allErrors }: { readonly allErrors: boolean },
): Promise<Check> {
  const draft = typeof $schema === "string" ? DRAFTS[$schema.replaceAll(/^https?:\/\/|#$/g, "")] : undefined;
  if (draft === undefined) throw new Error(`uses an unknown draft: ${JSON.stringify($schema)}`);
  // An asynchronous check would return a promise, and any value would pass.
  if (schema["$async"] === true) throw new Error("uses $async, which is not JSON Schema");
  const unfolded = new Unfolded(schema).most();
  if (unfolded > MAX_UNFOLDED)
    throw new Error(`refers to its own parts so often that one value would meet ${MAX_UNFOLDED} or more`);
  const Checks = await draft();
  try {
    const validate = new Checks({ allErrors, strict: false, validateFormats: false }).compile(schema);
    return (value) => {
      try {
        return validate(value) ? [] : (validate.errors ?? []);
      } catch (thrown) {
        const message = `cannot be checked, because its schema refers to itself: ${reasonOf(thrown)}`;
        return [{ instancePath: "", message, params: {} }];
      }
    };
  } catch (thrown) {
    throw new Error(`is not a valid JSON Schema: ${reasonOf(thrown)}`, { cause: thrown });
  }
}

const MAX_UNFOLDED = 10_000;

/** Keywords whose schemas apply to the same value as the schema that they are in. */
const IN_PLACE = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];
const REFERENCES = ["$ref", "$dynamicRef", "$recursiveRef"];
/** Keywords whose values are data, not schemas. */
const DATA: ReadonlySet<string> = new Set(["const", "enum", "default", "examples"]);

/** Counts how many schemas one value would meet: with references, a short text can stand for 2^100. */
class Unfolded {
  readonly #root: JsonSchema;
  readonly #named = new Map<string, object>();
  readonly #counts = new Map<object, number>();

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  most(): number {
    const parts = partsOf(this.#root);
    for (const part of parts)
      for (const [key, mark] of [
        ["$id", ""],
        ["$anchor", "#"],
        ["$dynamicAnchor", "#"],
      ] as const) {
        const name: unknown = Reflect.get(part, key);
        if (typeof name === "string") this.#named.set(mark + name, part);
      }
    return parts.reduce((most, part) => Math.max(most, this.#count(part)), 0);
  }

  /** A schema that is met again within itself is not counted again: a check of it ends with an error. */
  #count(part: unknown): number {
    if (typeof part !== "object" || part === null) return 1;
    const known = this.#counts.get(part);
    if (known !== undefined) return known;
    this.#counts.set(part, 1);
    const inner = IN_PLACE.flatMap((key): readonly unknown[] => {
      const value: unknown = Reflect.get(part, key);
      if (typeof value !== "object" || value === null) return [];
      const isSchema = key === "not" || key === "if" || key === "then" || key === "else";
      return isSchema ? [value] : Object.values(value);
    });
    const targets = REFERENCES.flatMap((key) => this.#target(Reflect.get(part, key)) ?? []);
    const count = [...inner, ...targets].reduce((sum: number, each) => sum + this.#count(each), 1);
    this.#counts.set(part, count);
    return count;
  }

  #target(ref: unknown): unknown {
    if (typeof ref !== "string") return undefined;
    const named = this.#named.get(ref);
    if (named !== undefined) return named;
    const [base = "", pointer = ""] = ref.split("#", 2);
    let at: unknown = base === "" ? this.#root : this.#named.get(base);
    for (const step of pointer.split("/").slice(1)) {
      const key = (percentDecoded(step) ?? step).replaceAll("~1", "/").replaceAll("~0", "~");
      at = typeof at === "object" && at !== null && Object.hasOwn(at, key) ? Reflect.get(at, key) : undefined;
    }
    return at;
  }
}

/** All objects of a schema that may be schemas; not recursive, since a schema may be nested as deep as it likes. */
function partsOf(root: JsonSchema): readonly object[] {
  const parts: object[] = [];
  const waiting: object[] = [root];
  for (let part = waiting.pop(); part !== undefined; part = waiting.pop()) {
    parts.push(part);
    for (const [key, value] of Object.entries(part) as [string, unknown][])
      if (typeof value === "object" && value !== null && !(isFields(part) && DATA.has(key)))
        waiting.push(value);
  }
  return parts;
}

const MAX_ISSUES = 8;

/** What is wrong with the arguments of a call, for the model: the first issues that the validation found. */
export const schemaIssues = (errors: readonly SchemaError[] | null | undefined): readonly string[] =>
  (errors ?? []).slice(0, MAX_ISSUES).map(issueText);

function issueText({ instancePath, message = "does not fit", params }: SchemaError): string {
  const at = instancePath.slice(1).replaceAll("/", ".");
  const extra: unknown = Reflect.get(params, "additionalProperty") ?? Reflect.get(params, "allowedValues");
  const more = extra === undefined ? "" : `: ${JSON.stringify(extra)}`;
  return `${at === "" ? "" : `${at}: `}${message}${more}`;
}
