import { asFields, asText, type Fields } from "../http/fields.ts";
import type { WireEvent } from "../wire.ts";

interface Part {
  /** What the server calls it by. */
  readonly key: unknown;
  readonly index: number;
  id: string | undefined;
  name: string | undefined;
  /** Its arguments have begun. */
  begun: boolean;
}

/**
 * Parts of calls by an index of our own. Servers count from 0, leave the index out, or give every call the same; some
 * say id and name once, some with every part, some a new id with every part. A part begins a call when it is the first
 * of its index, or brings an id that is not its index's own together with a name.
 */
export class CallParts {
  readonly #parts: Part[] = [];

  read(call: Fields, events: WireEvent[]): void {
    const made = asFields(call["function"]) ?? call;
    const [id, name] = [asText(call["id"]), asText(made["name"])];
    const args = argumentText(made["arguments"]);
    const part = this.#partOf(call["index"], id, name) ?? this.#begin(call["index"]);
    const fresh = freshIn(part, id, name);
    part.id ??= id;
    part.name ??= name;
    part.begun ||= args !== "";
    const whole = args === "" ? fresh : { ...fresh, args };
    if (Object.keys(whole).length > 0) events.push({ type: "call", index: part.index, ...whole });
  }

  #begin(key: unknown): Part {
    const part = { key, index: this.#parts.length, id: undefined, name: undefined, begun: false };
    this.#parts.push(part);
    return part;
  }

  #partOf(key: unknown, id: string | undefined, name: string | undefined): Part | undefined {
    const nameless = key === undefined || key === null;
    const last = nameless ? this.#parts.at(-1) : this.#parts.findLast((part) => part.key === key);
    if (last === undefined || name === undefined) return last;
    if (id === undefined) return nameless && last.name !== undefined ? undefined : last;
    return last.id === undefined || last.id === id ? last : undefined;
  }
}

/** What was not said before; a name may come in pieces, until the arguments begin. */
function freshIn(
  part: Part,
  id: string | undefined,
  name: string | undefined,
): { id?: string; name?: string } {
  return {
    ...(part.id === undefined && id !== undefined ? { id } : {}),
    ...(name !== undefined && name !== part.name && !part.begun ? { name } : {}),
  };
}

/** Some servers give an object where the API says text. */
function argumentText(args: unknown): string {
  if (args === undefined || args === null) return "";
  return typeof args === "string" ? args : JSON.stringify(args);
}
