import { endless, LONGEST_LINE } from "../wire.ts";

export interface SseEvent {
  /** Empty when the server names none. */
  readonly event: string;
  readonly data: string;
}

/** Fields that are not known are left out, as the standard says. */
const FIELD = /^[A-Za-z][\w-]{0,30}$/;
/** What a line costs beside its text: an empty one is kept too. */
const OF_A_LINE = 64;
const BRACE = 0x7b;
const SPACE = 0x20;

/**
 * Server-sent events out of bytes that may be cut anywhere: inside a character, a line end or a JSON token. Beyond the
 * standard it takes what servers really do: a last event without its blank line, a bare JSON line for an error, and a
 * field called `error`. Bytes that are no UTF-8 become U+FFFD; an event without an end throws a `WireFailure`.
 */
export class SseReader {
  readonly #decoder = new TextDecoder();
  #line = "";
  #afterCr = false;
  #event = "";
  #data: string[] = [];
  #size = 0;
  /** The first line that cannot be one of such a stream; empty while there is none. */
  stray = "";

  push(bytes: Uint8Array): SseEvent[] {
    return this.#take(this.#decoder.decode(bytes, { stream: true }));
  }

  /** What was still open when the connection ended. */
  end(): SseEvent[] {
    return this.#take(`${this.#decoder.decode()}\n\n`);
  }

  #take(text: string): SseEvent[] {
    const found: SseEvent[] = [];
    let start = this.#afterCr && text.startsWith("\n") ? 1 : 0;
    if (text !== "") this.#afterCr = false;
    const returns = text.includes("\r");
    for (;;) {
      const end = returns ? nextEnd(text, start) : text.indexOf("\n", start);
      if (end === -1) break;
      const event = this.#endLine(text.slice(start, end));
      if (event !== undefined) found.push(event);
      start = end + 1;
      if (text[end] !== "\r") continue;
      if (start === text.length) this.#afterCr = true;
      else if (text[start] === "\n") start += 1;
    }
    // Searching only what is new keeps a long line linear: the rope is joined once, at its end.
    this.#line += text.slice(start);
    if (this.#line.length + this.#size > LONGEST_LINE)
      throw endless("the server sends an event without an end");
    return found;
  }

  #endLine(rest: string): SseEvent | undefined {
    const line = this.#line === "" ? rest : this.#line + rest;
    this.#line = "";
    if (line !== "") {
      this.#field(line);
      return undefined;
    }
    const event = {
      event: this.#event,
      data: this.#data.length === 1 ? this.#data[0]! : this.#data.join("\n"),
    };
    const empty = this.#data.length === 0;
    this.#event = "";
    this.#data = [];
    this.#size = 0;
    return empty ? undefined : event;
  }

  #field(line: string): void {
    if (line.charCodeAt(0) === BRACE) return this.#add(line);
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon === -1 ? line : line.slice(0, colon);
    const value =
      colon === -1 ? "" : line.slice(line.charCodeAt(colon + 1) === SPACE ? colon + 2 : colon + 1);
    if (name === "data") this.#add(value);
    else if (name === "event") this.#event = value;
    else if (name === "error") {
      this.#event = "error";
      this.#add(value);
    } else if (!FIELD.test(name) && this.stray === "") this.stray = line.slice(0, 200);
  }

  #add(data: string): void {
    this.#data.push(data);
    this.#size += data.length + OF_A_LINE;
  }
}

function nextEnd(text: string, start: number): number {
  const feed = text.indexOf("\n", start);
  const carriage = text.indexOf("\r", start);
  return feed === -1 || carriage === -1 ? Math.max(feed, carriage) : Math.min(feed, carriage);
}
