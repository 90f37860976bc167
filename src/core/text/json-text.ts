/** The text of JSON, apart from its value: where it ends, how deep it is nested, which keys occur twice. */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENS: ReadonlySet<number> = new Set([0x7b, 0x5b]);
const CLOSES: ReadonlySet<number> = new Set([0x7d, 0x5d]);
const OBJECT = 0x7b;

/** Follows a JSON text as it arrives, in linear time, and tells whether a string or bracket is still open. */
export class JsonEnds {
  #depth = 0;
  #begun = false;
  #inString = false;
  #escaped = false;

  push(piece: string): void {
    for (let at = 0; at < piece.length; at += 1) this.#step(piece.charCodeAt(at));
  }

  /** A value with brackets has begun and ended. */
  get complete(): boolean {
    return this.#begun && !this.open;
  }

  get open(): boolean {
    return this.#inString || this.#depth > 0;
  }

  #step(code: number): void {
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false;
      else if (code === BACKSLASH) this.#escaped = true;
      else if (code === QUOTE) this.#inString = false;
    } else if (code === QUOTE) this.#inString = true;
    else if (OPENS.has(code)) {
      this.#depth += 1;
      this.#begun = true;
    } else if (CLOSES.has(code)) this.#depth -= 1;
  }
}

/** The nesting depth of a valid JSON text, and a key that occurs twice in one object. */
export function surveyJson(json: string): { readonly depth: number; readonly twice: string | null } {
  /** The keys of each open object; null for a list. */
  const open: (Set<string> | null)[] = [];
  let depth = 0;
  let keyNext = false;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      const end = stringEnd(json, at);
      const keys = open.at(-1);
      if (keyNext && keys instanceof Set) {
        const key = keyIn(json.slice(at, end + 1));
        if (keys.has(key)) return { depth, twice: key };
        keys.add(key);
      }
      keyNext = false;
      at = end;
    } else if (OPENS.has(code)) {
      open.push(code === OBJECT ? new Set() : null);
      depth = Math.max(depth, open.length);
      keyNext = code === OBJECT;
    } else if (CLOSES.has(code)) open.pop();
    else if (code === COMMA) keyNext = open.at(-1) instanceof Set;
  }
  return { depth, twice: null };
}

/** The index of the closing quote of the string that opens at `start`. */
function stringEnd(json: string, start: number): number {
  let end = json.indexOf('"', start + 1);
  while (end !== -1 && backslashesBefore(json, end) % 2 === 1) end = json.indexOf('"', end + 1);
  return end === -1 ? json.length : end;
}

function backslashesBefore(json: string, at: number): number {
  let count = 0;
  while (json.charCodeAt(at - 1 - count) === BACKSLASH) count += 1;
  return count;
}

const keyIn = (quoted: string): string =>
  quoted.includes("\\") ? String(JSON.parse(quoted)) : quoted.slice(1, -1);

/** The value of a JSON text in which somebody says what they want: of a key given twice, JSON would drop the first. */
export function parseUniqueJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  const { twice } = surveyJson(text);
  if (twice !== null) throw new DuplicateKey(twice);
  return value;
}

export class DuplicateKey extends Error {
  constructor(key: string) {
    super(`the key ${JSON.stringify(key)} appears twice`);
  }
}
