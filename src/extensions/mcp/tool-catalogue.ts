import { createHash } from "node:crypto";
import * as z from "zod";
import type { JsonSchema } from "../../core/model-provider.ts";
import { fieldsOf, isFields } from "../../core/text/json-values.ts";
import { visible } from "../../core/text/visible.ts";
import { plainSchema } from "./plain-schema.ts";

/** Which of a server's tools are offered to the model, under which names, and why the others are not. */

const MOST_TOOLS = 128;
const MOST_SCHEMAS = 256 * 1024;
const MOST_DESCRIPTION = 1000;
/** The limit of model APIs. */
const LONGEST_NAME = 64;

export interface OfferedTool {
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

export interface Catalogue {
  readonly tools: readonly OfferedTool[];
  /** Does not include denied tools: leaving those out is intended. */
  readonly left: readonly LeftOut[];
}

export interface Filter {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
}

const listed = z.looseObject({
  name: z.string().min(1).max(256),
  description: z.string().optional(),
  inputSchema: z.looseObject({}),
});

export function catalogueOf(server: string, list: readonly unknown[], filter: Filter): Catalogue {
  const tools = new Map<string, OfferedTool>();
  const left: LeftOut[] = [];
  let bytes = 0;
  for (const given of list) {
    const read = listed.safeParse(given);
    if (!read.success) {
      left.push({ tool: nameIn(given), why: "its definition is not a valid MCP tool" });
      continue;
    }
    const name = toolName(server, read.data.name);
    if (!isWanted(filter, read.data.name, name)) continue;
    const tool = offeredTool(name, read.data);
    if ("why" in tool) left.push(tool);
    else if (tools.has(name))
      left.push({ tool: read.data.name, why: `another tool is already named ${name}` });
    else if (tools.size >= MOST_TOOLS)
      left.push({ tool: read.data.name, why: `there are more than ${MOST_TOOLS} tools` });
    else if (bytes + sizeOf(tool) > MOST_SCHEMAS)
      left.push({
        tool: read.data.name,
        why: "the descriptions and schemas of all tools together are too long",
      });
    else {
      bytes += sizeOf(tool);
      tools.set(name, tool);
    }
  }
  return { tools: [...tools.values()], left };
}

const sizeOf = ({ description, schema }: OfferedTool): number =>
  description.length + JSON.stringify(schema).length;

function nameIn(given: unknown): string {
  const { name } = fieldsOf(given);
  return typeof name === "string" ? name.slice(0, 100) : "(without a name)";
}

function offeredTool(name: string, given: z.infer<typeof listed>): OfferedTool | LeftOut {
  const read = plainSchema(given.inputSchema);
  if ("why" in read) return { tool: given.name, why: read.why };
  const { name: own, description = "", inputSchema } = given;
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
