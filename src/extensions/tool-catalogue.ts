/** Which of an MCP server's tools are offered to the model, under which names, and why the others are not. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import type { JsonSchema } from "../core/model-provider.ts";
import { fieldsOf, isDeeper, isFields } from "../core/raw-data.ts";
import { visible } from "../core/visible.ts";
import { errorCode } from "../core/errors.ts";
import { replaceFile } from "../platform/safe-files.ts";
import { makeFolder } from "../platform/folders.ts";

const MOST_TOOLS = 128;
const MOST_SCHEMAS = 256 * 1024;
const MOST_DESCRIPTION = 1000;
/** The limit of model APIs. */
const LONGEST_NAME = 64;

export interface McpTool {
  /** `server__tool` */
  readonly name: string;
  /** The server's own name for the tool. */
  readonly own: string;
  readonly description: string;
  /** For the model. */
  readonly schema: JsonSchema;
  /** Arguments are checked against this. */
  readonly check: JsonSchema;
  /** Hash of everything that the server says about the tool. */
  readonly hash: string;
}

interface LeftOut {
  readonly tool: string;
  readonly why: string;
}

export interface ToolCatalogue {
  readonly tools: readonly McpTool[];
  /** Does not include denied tools: leaving those out is intended. */
  readonly left: readonly LeftOut[];
}

interface Filter {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

const listed = z.looseObject({
  name: z.string().min(1).max(256),
  description: z.string().optional(),
  inputSchema: z.looseObject({}),
});

export function catalogueOf(server: string, list: readonly unknown[], filter: Filter): ToolCatalogue {
  const tools = new Map<string, McpTool>();
  const left: LeftOut[] = [];
  const budget = { nodes: MOST_NODES_OF_ALL };
  let bytes = 0;
  for (const each of list) {
    const read = listed.safeParse(each);
    if (!read.success) {
      left.push({ tool: nameIn(each), why: "its definition is not a valid MCP tool" });
      continue;
    }
    const name = toolName(server, read.data.name);
    if (!isWanted(filter, read.data.name, name)) continue;
    const full =
      tools.size >= MOST_TOOLS ? `there are more than ${MOST_TOOLS} tools` : budget.nodes < 0 ? TOO_LONG : "";
    const tool = full === "" ? offeredTool(name, read.data, budget) : { tool: read.data.name, why: full };
    if ("why" in tool) left.push(tool);
    else if (tools.has(name))
      left.push({ tool: read.data.name, why: `another tool is already named ${name}` });
    else if (bytes + sizeOf(tool) > MOST_SCHEMAS) left.push({ tool: read.data.name, why: TOO_LONG });
    else {
      bytes += sizeOf(tool);
      tools.set(name, tool);
    }
  }
  return { tools: [...tools.values()], left };
}

const TOO_LONG = "the descriptions and schemas of all tools together are too long";

const sizeOf = ({ description, schema }: McpTool): number =>
  description.length + JSON.stringify(schema).length;

function nameIn(tool: unknown): string {
  const { name } = fieldsOf(tool);
  return typeof name === "string" ? name.slice(0, 100) : "(without a name)";
}

function offeredTool(name: string, tool: z.infer<typeof listed>, budget: NodeBudget): McpTool | LeftOut {
  if (isDeeper(tool.inputSchema, DEEPEST_DEFINITION))
    return { tool: tool.name, why: "its schema is nested too deep" };
  const read = plainSchema(tool.inputSchema, budget);
  if ("why" in read) return { tool: tool.name, why: read.why };
  const { name: own, description = "", inputSchema } = tool;
  return {
    name,
    own,
    description: described(description),
    ...read,
    hash: hashOf({ description, inputSchema }),
  };
}

function described(text: string): string {
  const shown = visible(text.slice(0, MOST_DESCRIPTION).toWellFormed()).trim();
  return text.length > MOST_DESCRIPTION
    ? `${shown.slice(0, MOST_DESCRIPTION)}…`
    : shown.slice(0, MOST_DESCRIPTION);
}

/** The order of keys does not matter. */
function hashOf(value: unknown): string {
  const text = JSON.stringify(value, (_, inner: unknown) =>
    isFields(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
  return createHash("sha256").update(text).digest("hex");
}

/**
 * Replaces characters that models cannot write with `_`; a name that is too long is cut and ends in a hash of the
 * whole.
 */
function toolName(server: string, tool: string): string {
  const whole = `${server}__${tool.replaceAll(/[^A-Za-z0-9_-]/gu, "_")}`;
  if (whole.length <= LONGEST_NAME) return whole;
  const mark = createHash("sha256").update(tool).digest("hex").slice(0, 7);
  return `${whole.slice(0, LONGEST_NAME - mark.length - 1)}_${mark}`;
}

/** Deny wins over allow. */
function isWanted({ allow, deny }: Filter, own: string, name: string): boolean {
  const fits = (glob: string): boolean => fitsGlob(glob, own) || fitsGlob(glob, name);
  return !deny.some(fits) && (allow.length === 0 || allow.some(fits));
}

/** `*` matches anything, `?` one character; a single pass without costly backtracking. */
function fitsGlob(glob: string, text: string): boolean {
  let [at, from, star, mark] = [0, 0, -1, 0];
  while (from < text.length) {
    if (at < glob.length && glob[at] !== "*" && (glob[at] === "?" || glob[at] === text[from])) {
      at += 1;
      from += 1;
    } else if (glob[at] === "*") {
      star = at;
      mark = from;
      at += 1;
    } else if (star === -1) return false;
    else {
      mark += 1;
      [at, from] = [star + 1, mark];
    }
  }
  while (glob[at] === "*") at += 1;
  return at === glob.length;
}

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
interface NodeBudget {
  nodes: number;
}

const DEEPEST = 16;
/** Levels of a whole definition, with the parts that are ignored: the hash covers them too. */
const DEEPEST_DEFINITION = 100;
const MOST_NODES = 2000;
const MOST_NODES_OF_ALL = 100_000;
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

function plainSchema(schema: unknown, budget: NodeBudget): PlainSchemas | { readonly why: string } {
  try {
    if (!isFields(schema) || (schema["type"] !== undefined && schema["type"] !== "object"))
      throw new Unfit("its arguments are not an object");
    const whole = new Copy(schema, budget).schema(schema, 0, []);
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
  readonly #budget: NodeBudget;
  #nodes = 0;

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
    return Object.fromEntries(found);
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
    if (refs.includes(ref)) return {};
    const target = this.schema(this.#at(ref), depth + 1, [...refs, ref]);
    const { $ref: _, ...siblings } = schema;
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
        return typeof value === "string" ? shown(value) : undefined;
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
    if (depth > DEEPEST) throw new Unfit("its schema is nested too deep");
    if (this.#nodes > MOST_NODES) throw new Unfit("its schema is too large");
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

/** What a server last said about each of its tools: a hash, stored in the user's state. */

const MOST = 2000;
const form = z.strictObject({ form: z.literal(1), tools: z.record(z.string(), z.string()) });

interface Compared {
  /** The description has changed. */
  readonly changed: readonly McpTool[];
  /** New tools; empty if nothing was known about the server. */
  readonly added: readonly McpTool[];
}

export class ToolPins {
  readonly #file: string;
  #known: Readonly<Record<string, string>> | undefined;
  #written: Promise<void> = Promise.resolve();

  constructor(file: string) {
    this.#file = file;
    this.#known = read(file);
  }

  compare(tools: readonly McpTool[]): Compared {
    const known = this.#known;
    if (known === undefined) return { changed: [], added: [] };
    const isKnown = ({ own }: McpTool): boolean => Object.hasOwn(known, own);
    return {
      changed: tools.filter((tool) => isKnown(tool) && known[tool.own] !== tool.hash),
      added: tools.filter((tool) => !isKnown(tool)),
    };
  }

  /** Records the tools as they are now. A removed tool stays known: it may return in another form. */
  keep(tools: readonly McpTool[]): Promise<void> {
    const now = tools.map(({ own, hash }) => [own, hash] as const);
    const before = Object.entries(this.#known ?? {}).filter(
      ([own]) => !tools.some((tool) => tool.own === own),
    );
    const known = Object.fromEntries([...before, ...now].slice(-MOST));
    if (JSON.stringify(known) === JSON.stringify(this.#known)) return this.#written;
    this.#known = known;
    this.#written = this.#written.catch(() => undefined).then(() => this.#write(known));
    return this.#written;
  }

  /** Resolves when everything was stored, or storing has failed. */
  async settled(): Promise<void> {
    await this.#written.catch(() => undefined);
  }

  async #write(known: Readonly<Record<string, string>>): Promise<void> {
    makeFolder(path.dirname(this.#file));
    const text = `${JSON.stringify({ form: 1, tools: known })}\n`;
    await replaceFile(this.#file, text, {
      mode: 0o600,
      aside: `${this.#file}.${process.pid}.new`,
      lasts: "name",
    });
  }
}

/** If the file is unreadable, nothing is known: then every tool counts as new. */
function read(file: string): Readonly<Record<string, string>> | undefined {
  try {
    return form.parse(JSON.parse(readFileSync(file, "utf8"))).tools;
  } catch (thrown) {
    return errorCode(thrown) === "ENOENT" ? undefined : {};
  }
}
