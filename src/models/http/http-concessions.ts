import type { Fields } from "../json-text.ts";
import type { Refusal } from "./http-refusals.ts";

/** A field that a server may refuse, and how the request looks without it. */
export interface Concession {
  readonly name: string;
  readonly says: RegExp;
  /** The request without it; undefined when it holds nothing to give up. `text` is what the server said. */
  readonly without: (body: Fields, text: string) => Fields | undefined;
  /** What the user is told each time; nothing when it makes no difference that counts. */
  readonly note?: string;
}

interface Conceded {
  readonly body: Fields;
  readonly notes: readonly string[];
}

/** Which of a table's fields which model refuses. Learnt from refusals, kept as long as the wire. */
export class Concessions {
  readonly #table: readonly Concession[];
  readonly #made = new Map<string, Map<Concession, string>>();

  constructor(table: readonly Concession[]) {
    this.#table = table;
  }

  /** The request without all that `model` is known to refuse. */
  applied(model: string, whole: Fields): Conceded {
    let body = whole;
    const notes: string[] = [];
    for (const [concession, text] of this.#made.get(model) ?? []) {
      const less = concession.without(body, text);
      if (less === undefined) continue;
      body = less;
      if (concession.note !== undefined) notes.push(concession.note);
    }
    return { body, notes };
  }

  /** Whether the refusal is about a field that `body`, as it was sent, can do without. Each is given up once. */
  learn(model: string, body: Fields, { status, code, text }: Refusal): boolean {
    if (![400, 404, 422, 500, 501].includes(status)) return false;
    const words = `${code} ${text}`.slice(0, 4000);
    const made = this.#made.get(model) ?? new Map<Concession, string>();
    const found = this.#table.find(
      (row) => !made.has(row) && row.says.test(words) && row.without(body, words) !== undefined,
    );
    if (found === undefined) return false;
    this.#made.set(model, made.set(found, words));
    return true;
  }
}

/** The body without one field; undefined when it is not there. */
export function withoutField(body: Fields, name: string): Fields | undefined {
  if (!(name in body)) return undefined;
  return Object.fromEntries(Object.entries(body).filter(([key]) => key !== name));
}
