import { type ParseError, parse as parseJsonc } from "jsonc-parser";
import { parse as parseToml } from "smol-toml";
import { type Fields, isFields } from "../../core/text/json-values.ts";

/** Manifests are small; a larger text is not read as one. */
const MAX_TEXT = 4 * 2 ** 20;

/** The fields of an object, or of a JSON text, in which comments and trailing commas are accepted. */
export function fieldsOf(value: unknown, most = MAX_TEXT): Fields | undefined {
  if (typeof value !== "string") return isFields(value) ? value : undefined;
  if (value.length > most) return undefined;
  const text = value.startsWith("\ufeff") ? value.slice(1) : value;
  try {
    const plain: unknown = JSON.parse(text);
    return isFields(plain) ? plain : undefined;
  } catch {
    return loose(text);
  }
}

/** The parser is recursive. */
const MAX_DEPTH = 200;

/** Whether a text is complete JSON, apart from comments and trailing commas. */
export function isWholeJson(text: string): boolean {
  if (isDeep(text)) return false;
  const errors: ParseError[] = [];
  return isFields(parseJsonc(text, errors, { allowTrailingComma: true })) && errors.length === 0;
}

function isDeep(text: string): boolean {
  let [depth, deepest] = [0, 0];
  for (const character of text) {
    if (character === "[" || character === "{") deepest = Math.max(deepest, (depth += 1));
    else if (character === "]" || character === "}") depth -= 1;
  }
  return deepest > MAX_DEPTH;
}

function loose(text: string): Fields | undefined {
  if (isDeep(text)) return undefined;
  const errors: ParseError[] = [];
  const value: unknown = parseJsonc(text, errors, { allowTrailingComma: true });
  return isFields(value) ? value : undefined;
}

export function tomlOf(text: string, most = MAX_TEXT): Fields | undefined {
  if (text.length > most) return undefined;
  try {
    return parseToml(text, { maxDepth: MAX_DEPTH });
  } catch {
    return undefined;
  }
}

/** The value at a path of keys. */
export const fieldAt = (fields: Fields | undefined, ...keys: readonly string[]): unknown =>
  keys.reduce<unknown>((value, key) => (isFields(value) ? value[key] : undefined), fields);

/** The text of a value with or without quotes. */
export const textIn = (value: unknown): string =>
  typeof value === "string" ? value.trim().replace(/^["']|["'],?$/g, "") : "";

/** All texts in a value, however deep. */
export function textsIn(value: unknown, depth = 0): readonly string[] {
  if (typeof value === "string") return [value];
  if (depth > 20 || typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap((each) => textsIn(each, depth + 1));
}

const USUAL = new Set(
  "git node npm npx yarn pnpm sudo su doas ssh scp curl wget sh bash zsh python python3 pip pip3 make cmake gcc cc g++ clang go cargo rustc java javac mvn gradle docker kubectl ls cat cp mv rm ps kill grep find sed awk env id whoami gpg gh aws ssh-agent ssh-add ruby gem php composer perl vi vim code".split(
    " ",
  ),
);

/** Whether somebody who types this name means another, well-known program. */
export const isUsualProgram = (name: string): boolean => USUAL.has(name.toLowerCase());
