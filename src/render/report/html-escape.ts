import { visible } from "../../core/visible.ts";

/** Text that is HTML already. Only `markup` makes it, so that a text of others never counts as such. */
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

/** What is put in is escaped for text and for quoted attributes alike, and shows every control and direction. */
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

/** A page is read on a phone; all of a text is in the JSON of the same report. */
const MAX_TEXT = 12_000;

/** Its beginning and its end, and how much was between. */
export function cutText(text: string, longest = MAX_TEXT): string {
  if (text.length <= longest) return text;
  const half = Math.floor(longest / 2);
  const head = text.slice(0, half).toWellFormed();
  const tail = text.slice(-half).toWellFormed();
  return `${head}\n… ${text.length - 2 * half} characters are left out; harness report --json has them …\n${tail}`;
}
