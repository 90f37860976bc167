/** Extracts calls in `<tool_call>` tags, as most templates teach them; anything that is no call stays text. */

export interface FoundCall {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

type TextOrCall =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "call"; readonly call: FoundCall };

const OPEN = "<tool_call>";
const CLOSE = "</tool_call>";

export class TaggedCalls {
  #held = "";
  /** Whitespace after a call belongs to its tag. */
  #behindCall = false;

  *read(text: string): Generator<TextOrCall> {
    this.#held += text;
    for (;;) {
      if (this.#behindCall) this.#held = this.#held.trimStart();
      if (this.#held === "") return;
      this.#behindCall = false;
      const open = this.#held.indexOf(OPEN);
      const free = open === -1 ? this.#held.length - tagStartLength(this.#held) : open;
      if (free > 0) yield { type: "text", text: this.#held.slice(0, free) };
      this.#held = this.#held.slice(free);
      const close = this.#held.indexOf(CLOSE);
      if (open === -1 || close === -1) return;
      yield* foundIn(this.#held.slice(0, close + CLOSE.length));
      this.#held = this.#held.slice(close + CLOSE.length);
      this.#behindCall = true;
    }
  }

  /** Text that is still buffered is no call. */
  *end(): Generator<TextOrCall> {
    if (this.#held !== "") yield { type: "text", text: this.#held };
    this.#held = "";
  }
}

/** How many characters at the end may be the beginning of a tag. */
function tagStartLength(text: string): number {
  for (let length = OPEN.length - 1; length > 0; length -= 1)
    if (text.endsWith(OPEN.slice(0, length))) return length;
  return 0;
}

function* foundIn(tagged: string): Generator<TextOrCall> {
  const inside = tagged.slice(OPEN.length, -CLOSE.length).trim();
  const calls = inside.split("\n").map(callIn);
  const found = calls.filter((call) => call !== undefined);
  const whole = callIn(inside);
  if (whole !== undefined) yield { type: "call", call: whole };
  else if (found.length === calls.length) for (const call of found) yield { type: "call", call };
  else yield { type: "text", text: tagged };
}

function callIn(text: string): FoundCall | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { name, arguments: args } = (value ?? {}) as {
    readonly name?: unknown;
    readonly arguments?: unknown;
  };
  if (typeof name !== "string" || typeof args !== "object" || args === null) return undefined;
  return { name, args: args as FoundCall["args"] };
}
