import { visible } from "../core/visible.ts";

/** Text that is already HTML. Only `markup` creates it, so text from elsewhere is never taken for HTML. */
export class Html {
  readonly #text: string;

  constructor(parts: TemplateStringsArray, values: readonly Value[]) {
    this.#text = parts.map((part, at) => part + shown(values[at])).join("");
  }

  toString(): string {
    return this.#text;
  }
}

type Value = string | number | Html | readonly (string | Html)[] | undefined;

/** Values are escaped for text and for quoted attributes, and control and direction characters are made visible. */
export const markup = (parts: TemplateStringsArray, ...values: readonly Value[]): Html =>
  new Html(parts, values);

function shown(value: Value): string {
  if (value === undefined) return "";
  if (value instanceof Html) return value.toString();
  if (typeof value === "object") return value.map(shown).join("");
  return escaped(String(value));
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
  "`": "&#96;",
};

const escaped = (text: string): string =>
  visible(text.toWellFormed()).replaceAll(/[&<>"'`]/g, (character) => ENTITIES[character] ?? "");

/** Texts are shortened because a page may be read on a phone; the JSON report has them whole. */
const MAX_TEXT = 12_000;

/** Returns the beginning and the end of a text, with the length of what was left out between them. */
export function cutText(text: string, longest = MAX_TEXT): string {
  if (text.length <= longest) return text;
  const half = Math.floor(longest / 2);
  const head = text.slice(0, half).toWellFormed();
  const tail = text.slice(-half).toWellFormed();
  return `${head}\n… ${text.length - 2 * half} characters are left out; harness report --json has them …\n${tail}`;
}
