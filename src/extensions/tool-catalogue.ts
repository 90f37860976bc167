/** Which of an MCP server's tools are offered to the model, under which names, and why the others are not. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import type { JsonSchema } from "../core/model-provider.ts";
import { fieldsOf, isDeeper, isFields } from "../core/raw-data.ts";
import { MAX_NODES_OF_ALL, type NodeBudget, plainSchema } from "./plain-schema.ts";
import { visible } from "../core/visible.ts";
import { errorCode } from "../core/errors.ts";
import { replaceFile } from "../platform/safe-files.ts";
import { makeFolder } from "../platform/folders.ts";

const MAX_TOOLS = 128;
const MAX_SCHEMAS = 256 * 1024;
const MAX_DESCRIPTION = 1000;
/** The limit of model APIs. */
const MAX_NAME_LENGTH = 64;

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

/** Levels of a whole definition, with the parts that are ignored: the hash covers them too. */
const MAX_DEFINITION_DEPTH = 100;

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
  const budget = { nodes: MAX_NODES_OF_ALL };
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
      tools.size >= MAX_TOOLS ? `there are more than ${MAX_TOOLS} tools` : budget.nodes < 0 ? TOO_LONG : "";
    const tool = full === "" ? offeredTool(name, read.data, budget) : { tool: read.data.name, why: full };
    if ("why" in tool) left.push(tool);
    else if (tools.has(name))
      left.push({ tool: read.data.name, why: `another tool is already named ${name}` });
    else if (bytes + sizeOf(tool) > MAX_SCHEMAS) left.push({ tool: read.data.name, why: TOO_LONG });
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
  if (isDeeper(tool.inputSchema, MAX_DEFINITION_DEPTH))
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
  const shown = visible(text.slice(0, MAX_DESCRIPTION).toWellFormed()).trim();
  return text.length > MAX_DESCRIPTION
    ? `${shown.slice(0, MAX_DESCRIPTION)}…`
    : shown.slice(0, MAX_DESCRIPTION);
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
  if (whole.length <= MAX_NAME_LENGTH) return whole;
  const mark = createHash("sha256").update(tool).digest("hex").slice(0, 7);
  return `${whole.slice(0, MAX_NAME_LENGTH - mark.length - 1)}_${mark}`;
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

/** What a server last said about each of its tools: a hash, stored in the user's state. */

const MAX_REMEMBERED = 2000;
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
    const known = Object.fromEntries([...before, ...now].slice(-MAX_REMEMBERED));
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
