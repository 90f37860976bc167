import { readlink, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { applyEdits, modify, type Node, parseTree } from "jsonc-parser";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { makeFolder } from "../platform/folders.ts";
import { replaceFile as replaceWhole } from "../platform/safe-files.ts";
import { nested, parseConfigDocument, readConfigText, valueFromText } from "./load-config.ts";
import { hintFor, readLayer } from "./setting-rules.ts";
import { SEARCH_PATHS, type SearchPath, SETTING_KEYS, type SettingKey } from "./settings-schema.ts";
import { ALIASES } from "./setting-words.ts";

/** The dotted path of a setting that a person named, with aliases resolved. */
export function settingPath(dotted: string): SettingKey | SearchPath {
  const real = (Object.hasOwn(ALIASES, dotted) ? ALIASES[dotted] : undefined) ?? dotted;
  const part = SEARCH_PATHS.find((known) => known === real);
  if (part !== undefined) return part;
  const key = SETTING_KEYS.find((known) => known === real);
  if (key !== undefined) return key;
  const [head = ""] = real.split(".");
  if (head !== "search" && SETTING_KEYS.some((known) => known === head))
    throw new HarnessError(
      EXIT.usage,
      `${dotted}: ${head} is a single setting and can only be set as a whole`,
      `harness config get ${head}   (then: harness config set ${head} JSON)`,
    );
  throw new HarnessError(EXIT.usage, `${dotted}: unknown key; ${hintFor(real)}`, "harness config list");
}

/** Writes one setting into the user's file; its comments and other keys stay. All or nothing. */
export const setSetting = (file: string, dotted: string, text: string): Promise<void> =>
  setSettings(file, [[dotted, text]]);

/** Writes several settings, replacing the file once. */
export async function setSettings(
  file: string,
  wanted: readonly (readonly [dotted: string, text: string])[],
): Promise<void> {
  const before = readConfigText(file) ?? "{}\n";
  const document = parseConfigDocument(file, before);
  const edited = wanted.reduce((text, [dotted, valueText]) => {
    const key = settingPath(dotted);
    const value = withNextStep(`harness config set ${dotted} VALUE`, () => {
      const typed = valueFromText(key, valueText);
      readLayer(nested(key, typed), () => dotted);
      return typed;
    });
    const alias = Object.keys(ALIASES).find(
      (other) => ALIASES[other] === key && hasKey(document.value, other),
    );
    return withValue(text, (alias ?? key).split("."), value);
  }, before);
  readLayer(parseConfigDocument(file, edited).value, document.at);
  await replaceFile(file, edited);
}

/** Runs `read`; if it fails, `next` becomes the error's next step, since the value was typed on a command line. */
function withNextStep<T>(next: string, read: () => T): T {
  try {
    return read();
  } catch (thrown) {
    throw thrown instanceof HarnessError
      ? new HarnessError(thrown.exit, thrown.message, next, thrown)
      : thrown;
  }
}

/** Adds these grants to the list in the user's file, each once. */
export async function addGrants(file: string, grants: readonly string[]): Promise<void> {
  const before = readConfigText(file) ?? "{}\n";
  const document = parseConfigDocument(file, before);
  const { allow_domains: known = [] } = readLayer(document.value, document.at);
  const fresh = grants.filter((grant) => !known.includes(grant));
  if (fresh.length === 0) return;
  const edited = fresh.reduce((text, grant) => withItem(text, "allow_domains", grant), before);
  readLayer(parseConfigDocument(file, edited).value, document.at);
  await replaceFile(file, edited);
}

/** Puts this MCP server into the user's file, replacing one with the same name. */
export async function addServer(file: string, name: string, server: unknown): Promise<void> {
  withNextStep("harness mcp add --help", () => readLayer({ mcp: { [name]: server } }, () => name));
  const before = readConfigText(file) ?? "{}\n";
  const document = parseConfigDocument(file, before);
  const edited = withValue(before, ["mcp", name], server);
  readLayer(parseConfigDocument(file, edited).value, document.at);
  await replaceFile(file, edited);
}

/** Removes an MCP server; false when there is none of that name. */
export async function removeServer(file: string, name: string): Promise<boolean> {
  const before = readConfigText(file);
  if (before === undefined) return false;
  const { value } = parseConfigDocument(file, before);
  const servers: unknown =
    typeof value === "object" && value !== null ? Reflect.get(value, "mcp") : undefined;
  if (!hasKey(servers, name)) return false;
  await replaceFile(file, applyEdits(before, modify(before, ["mcp", name], undefined, FORMAT)));
  return true;
}

const hasKey = (value: unknown, key: string): boolean =>
  typeof value === "object" && value !== null && Object.hasOwn(value, key);

const FORMAT = { formattingOptions: { insertSpaces: true, tabSize: 2 } };

/**
 * The text of a config file with one value set. A new key goes below everything on the last key's line: the library's
 * own insertion would take that line's comment along.
 */
function withValue(text: string, keys: readonly string[], value: unknown): string {
  return insertion(text, keys, value) ?? applyEdits(text, modify(text, [...keys], value, FORMAT));
}

/** The text with a new key; undefined when the key exists already, or its object is empty. */
function insertion(text: string, keys: readonly string[], value: unknown): string | undefined {
  const root = parseTree(text.replace(/^\uFEFF/, " "), [], { allowTrailingComma: true });
  if (root === undefined) return undefined;
  const [head = "", inner] = keys;
  const outer = propertyOf(root, head)?.children?.[1];
  if (outer === undefined)
    return inserted(text, root, head, inner === undefined ? value : { [inner]: value });
  if (inner === undefined || propertyOf(outer, inner) !== undefined) return undefined;
  return outer.type === "object" ? inserted(text, outer, inner, value) : undefined;
}

/** The text with one more item in the list of this key. */
export function withItem(text: string, key: string, value: unknown): string {
  const root = parseTree(text.replace(/^\uFEFF/, " "), [], { allowTrailingComma: true });
  const list = root === undefined ? undefined : propertyOf(root, key)?.children?.[1];
  const edited = list?.type === "array" ? inserted(text, list, null, value) : undefined;
  return edited ?? withValue(text, [key], [value]);
}

const propertyOf = (node: Node, key: string): Node | undefined =>
  node.children?.find((property) => property.children?.[0]?.value === key);

/** Inserts after the last entry; `key` is null in a list. Undefined when there is no entry yet. */
function inserted(text: string, holder: Node, key: string | null, value: unknown): string | undefined {
  const last = holder.children?.at(-1);
  if (last === undefined) return undefined;
  const end = last.offset + last.length;
  const { comma, lineEnd } = restOfLine(text, end);
  const indent = /(?<=^|\n)[ \t]*$/.exec(text.slice(0, last.offset))?.[0];
  const separator = indent === undefined ? " " : `${text.includes("\r\n") ? "\r\n" : "\n"}${indent}`;
  const shown = JSON.stringify(value, null, indent === undefined ? undefined : 2).replaceAll("\n", separator);
  const property = `${separator}${key === null ? "" : `${JSON.stringify(key)}: `}${shown}`;
  const [first, trailing] = comma ? ["", ","] : [",", ""];
  return `${text.slice(0, end)}${first}${text.slice(end, lineEnd)}${property}${trailing}${text.slice(lineEnd)}`;
}

/** Whether a comma follows, and where the commas and comments of this line end. */
function restOfLine(text: string, offset: number): { readonly comma: boolean; readonly lineEnd: number } {
  const rest = /^(?:[ \t,]|\/\*[^]*?\*\/|\/\/[^\r\n]*)*/.exec(text.slice(offset))?.[0].trimEnd() ?? "";
  const comma = rest.replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, "").includes(",");
  return { comma, lineEnd: offset + rest.length };
}

/** Writes one of the user's files, all or nothing: links and permissions stay, a new file is private. */
export async function replaceFile(file: string, text: string): Promise<void> {
  const target = await behindLink(file);
  try {
    makeFolder(path.dirname(target));
    const mode = await modeOf(target);
    await replaceWhole(target, text, { mode, aside: `${target}.${process.pid}.tmp`, lasts: "content" });
  } catch (thrown) {
    const folder = path.dirname(target);
    const look = `ls -ld ${folder} && df -h ${folder}`;
    throw new HarnessError(EXIT.usage, `${target}: cannot be written: ${reasonOf(thrown)}`, look, thrown);
  }
}

const PRIVATE = 0o600;

const modeOf = (file: string): Promise<number> =>
  stat(file).then(
    ({ mode }) => mode & 0o777,
    () => PRIVATE,
  );

/** Where to write so that a link into someone's dotfiles remains a link, even if it points at nothing yet. */
async function behindLink(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch {
    const target = await readlink(file).catch(() => undefined);
    return target === undefined ? file : path.resolve(path.dirname(file), target);
  }
}
