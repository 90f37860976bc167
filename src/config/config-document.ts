import {
  getNodeValue,
  type Node,
  parse,
  type ParseError,
  parseTree,
  printParseErrorCode,
  visit,
} from "jsonc-parser";
import { EXIT, HarnessError } from "../core/errors.ts";
import { splitGrants } from "../core/grant.ts";
import type { SettingKey } from "./settings-schema.ts";

/** A config file's text as a value, with the position of each key. JSON with comments. */
export interface ConfigDocument {
  readonly value: unknown;
  /** `file:line:column` of the value at this path of keys, or of the nearest existing value around it. */
  readonly at: (keys: readonly PropertyKey[]) => string;
}

export function parseConfigDocument(file: string, text: string): ConfigDocument {
  const errors: ParseError[] = [];
  const body = text.startsWith("\uFEFF") ? ` ${text.slice(1)}` : text;
  const place = (offset: number): string => `${file}:${lineAndColumn(body, offset)}`;
  refuseDepth(body, place);
  const root = parseTree(body, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first !== undefined) {
    const what = printParseErrorCode(first.error)
      .replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ")
      .toLowerCase();
    throw configError(place(first.offset), `${what}; expected a JSON object`);
  }
  if (root?.type !== "object")
    throw configError(file, `expected a JSON object, found ${root?.type ?? "nothing"}`);
  refuseDuplicates(root, place);
  return { value: getNodeValue(root), at: (keys) => place(nearestNode(root, keys).offset) };
}

export function configError(where: string, message: string): HarnessError {
  // The name of a flag or command is already in the message.
  const said = message.startsWith(`${where}: `) ? message : `${where}: ${message}`;
  return new HarnessError(EXIT.usage, said, nextFor(where));
}

/** The next step for a person. A typed value is in no file where it could be corrected. */
function nextFor(where: string): string {
  if (where.startsWith("--")) return "give it another value, or leave it out";
  return /^\/[a-z]+$/.test(where) ? `${where} ?` : "fix it there; harness doctor shows whether it is valid";
}

/** The parser recurses; no setting is nested deeper than a few levels. */
function refuseDepth(text: string, place: (offset: number) => string): void {
  let depth = 0;
  const enter = (offset: number): void => {
    depth += 1;
    if (depth > MAX_DEPTH) throw configError(place(offset), `nested more than ${MAX_DEPTH} levels deep`);
  };
  const leave = (): void => {
    depth -= 1;
  };
  visit(text, { onObjectBegin: enter, onArrayBegin: enter, onObjectEnd: leave, onArrayEnd: leave });
}

const MAX_DEPTH = 32;

function refuseDuplicates(node: Node, place: (offset: number) => string): void {
  const seen = new Set<unknown>();
  for (const child of node.children ?? []) {
    if (node.type === "object") {
      const key: unknown = child.children?.[0]?.value;
      if (seen.has(key)) throw configError(place(child.offset), `${String(key)}: duplicate key`);
      seen.add(key);
    }
    refuseDuplicates(child, place);
  }
}

function nearestNode(root: Node, keys: readonly PropertyKey[]): Node {
  let node = root;
  for (const key of keys) {
    const inner =
      node.type === "array"
        ? node.children?.[Number(key)]
        : node.children?.find((property) => property.children?.[0]?.value === key)?.children?.[1];
    if (inner === undefined) return node;
    node = inner;
  }
  return node;
}

function lineAndColumn(text: string, offset: number): string {
  const before = text.slice(0, offset).split("\n");
  return `${before.length}:${(before.at(-1)?.length ?? 0) + 1}`;
}

const AS_WRITTEN: ReadonlySet<string> = new Set([
  "provider",
  "engine",
  "base_url",
  "chat_model",
  "embed_model",
  "mode",
  "on_ask",
  "isolation",
  "image",
  "env",
  "check",
  "memory",
  "network_upload",
  "network_download",
  "network_idle_timeout",
  "park_timeout",
  "timeout",
  "min_release_age",
  "connect_timeout",
  "first_token_timeout",
  "idle_timeout",
  "search.store",
  "search.url",
]);

/** A setting's value from one word of text: a flag, an environment variable or `config set`. */
export function valueFromText(key: SettingKey | `search.${string}`, text: string): unknown {
  if (AS_WRITTEN.has(key)) return text === "null" ? null : text;
  if (key === "allow_domains" && !text.trim().startsWith("[")) return splitGrants(text);
  if ((key === "install_scripts" || key === "deny_domains") && !text.trim().startsWith("["))
    return wordsIn(text);
  if (key === "secrets" && !text.trim().startsWith("{"))
    return text.split(/\s+/).filter((word) => word !== "");
  const errors: unknown[] = [];
  const value: unknown = parse(text, errors as never[]);
  return errors.length > 0 ? text : value;
}

const wordsIn = (text: string): readonly string[] => text.split(/[\s,]+/).filter((word) => word !== "");

/** `{search: {store: v}}` for `search.store`, `{mode: v}` for `mode`. */
export function nested(dotted: string, value: unknown): Record<string, unknown> {
  const [head = "", ...rest] = dotted.split(".");
  return { [head]: rest.length === 0 ? value : nested(rest.join("."), value) };
}
