import { isFields } from "../../core/text/json-values.ts";
import type { WrittenMiss } from "./call-reading.ts";
import { notOffered, type OfferedTools } from "./settle.ts";

/*
 * Calls in the forms of other agents. A reply that consists only of such a call was meant to act, but none of it is
 * run, because it can be read in several ways. The model is told the right form.
 */

interface Form {
  readonly pattern: RegExp;
  /**
   * Which names count: any name; one that shares a word with an offered name; an offered name; or an offered name that
   * is not a plain word.
   */
  readonly name: "any" | "near" | "offered" | "sure";
}

const NAME = "[`\"']?([A-Za-z_][\\w.-]{1,63})[`\"']?";
const FIELDS = "(?:args?|arguments|parameters|params|input|inputs|tool[ _]input|action[ _]input)";

/** For the result of `normalizedLines`; neighbouring parts of a pattern never match the same characters. */
const FORMS: readonly Form[] = [
  // Thought, Action, Action Input: the form of ReAct.
  {
    pattern: new RegExp(
      `^(?:(?:question|thought|reasoning|plan|action):[^]*\\n)?action: ?${NAME}\\naction[ _]input:`,
      "i",
    ),
    name: "any",
  },
  // Tool: NAME, Arguments: …; also as YAML.
  {
    pattern: new RegExp(
      `^(?:tool|function|action|call|tool[ _]call|tool[ _]name): ?${NAME}\\n${FIELDS}:`,
      "i",
    ),
    name: "near",
  },
  // <name><path>…</path></name>
  { pattern: /^<([a-z][\w-]{2,63})>\s*<[a-z][\w-]*>[^]*<\/[a-z][\w-]*>\s*<\/\1>$/, name: "near" },
  // name(path="…"), await name({…});
  {
    pattern: /^(?:(?:await|return|print\s*\() ?)?(?:[A-Za-z_]\w*\.){0,3}([A-Za-z_]\w*)\s*\([^]*\)\)?\s*;?$/,
    name: "sure",
  },
  // name {…}, @name {…}
  { pattern: /^@?`?([A-Za-z_][\w.-]{1,63})`?:?\s*\{[^]*\}$/, name: "offered" },
];

/** Longer replies are more likely texts about calls. */
const MAX_LENGTH = 50_000;
const FENCED = /^(`{3,10}|~{3,10})[\w-]*\n([^]*?)\n?\1$/;
const FINISHES = /^(?:none|finish|final[ _]?answer|n\/?a)$/i;
const ARGUMENTS = new Set(
  "path file file_path filename command cmd content pattern query old new patch".split(" "),
);
/** Keys that hold a tool's name; `TOOL_KEYS` are those that rarely hold anything else. */
const NAME_KEYS = ["tool", "tool_name", "action", "function"];
const TOOL_KEYS: ReadonlySet<string> = new Set(["tool", "tool_name"]);

/** The call that the whole reply was meant as; undefined for all other replies. */
export function inOtherForm(prose: string, tools: OfferedTools): WrittenMiss | undefined {
  const text = prose.trim();
  if (text === "" || text.length > MAX_LENGTH || tools.names.length === 0) return undefined;
  const plain = normalizedLines(text);
  const inner = FENCED.exec(plain)?.[2]?.trim() ?? plain;
  const name = nameIn(inner, tools) ?? flatName(inner, tools);
  if (name === undefined) return undefined;
  const offered = tools.resolve(name);
  if (offered === undefined) return notOffered({ name, args: {}, repaired: false }, tools);
  const reason = `calls are not read in this form, and nothing of it was run. Call ${offered} as the tool that it is, or send nothing but {"name": "${offered}", "arguments": {…}}.`;
  return { missed: "other_form", name, args: {}, reason, nearest: [] };
}

/** The lines that are not blank, with single spaces between words. */
const normalizedLines = (text: string): string =>
  text
    .split("\n")
    .flatMap((line) => line.trim().replaceAll(/\s+/g, " ") || [])
    .join("\n");

function nameIn(text: string, tools: OfferedTools): string | undefined {
  for (const { pattern, name: kind } of FORMS) {
    const name = pattern.exec(text)?.[1];
    if (name !== undefined && !FINISHES.test(name) && isMeant(name, kind, tools)) return name;
  }
  return undefined;
}

function isMeant(name: string, kind: Form["name"], tools: OfferedTools): boolean {
  if (kind === "any") return true;
  const offered = tools.resolve(name);
  if (kind === "near") return offered !== undefined || tools.nearest(name).length > 0;
  return offered !== undefined && (kind === "offered" || isToolLikeName(offered));
}

/** A name that is unlikely to be an ordinary word of an answer. */
const isToolLikeName = (name: string): boolean => name.includes("_") || name === "bash";

/** {"tool": "read_file", "path": …}: the arguments are next to the name. */
function flatName(text: string, tools: OfferedTools): string | undefined {
  if (!text.startsWith("{") || !text.endsWith("}")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (!isFields(value) || !Object.keys(value).some((key) => ARGUMENTS.has(key))) return undefined;
    const key = NAME_KEYS.find((each) => typeof value[each] === "string") ?? "";
    const name = value[key];
    if (typeof name !== "string") return undefined;
    const offered = tools.resolve(name);
    const isNear = TOOL_KEYS.has(key) && tools.nearest(name).length > 0;
    return (offered !== undefined && isToolLikeName(offered)) || isNear ? name : undefined;
  } catch {
    return undefined;
  }
}
