import type { ProviderEvent, Stop } from "../core/provider.ts";
import type { Counted } from "./accounting/usage.ts";
import { NativeCalls } from "./native-calls.ts";
import type { Limits } from "./timeouts.ts";
import type { OfferedTools } from "./text-calls/names.ts";
import { WholeText } from "./whole-text.ts";
import type { WireEvent } from "./wire.ts";
import type { ReadCalls, WrittenCalls } from "./written-calls.ts";

export interface Ended {
  readonly found: ReadCalls;
  /** What was shown as text turned out to be a thought: the events begin anew. */
  readonly withdrawn: boolean;
  readonly events: readonly ProviderEvent[];
}

/** Reading one more piece costs as much as the text before it is long: a long text is read in larger pieces. */
const PACE = 512;

/** What one attempt brings, as it comes. */
export class Reply {
  text = "";
  thinking = "";
  stop: Stop = "unknown";
  counted: Counted = {};
  readonly notes: string[] = [];
  /** A person has seen something that is no thought. */
  shown = false;
  /** It was ended here, as it was longer than any answer. */
  cut = false;
  /** Anything came at all. */
  begun = false;
  #content = "";
  #pending = "";
  #characters = 0;
  #events = 0;
  readonly #native = new NativeCalls();
  readonly #wholeText = new WholeText();
  readonly #wholeThinking = new WholeText();
  readonly #written: WrittenCalls;
  readonly #limits: Limits;

  constructor(written: WrittenCalls, limits: Limits) {
    this.#written = written;
    this.#limits = limits;
  }

  /** What is to be shown of it, if anything. */
  take(event: WireEvent): ProviderEvent | null {
    this.begun = true;
    this.#events += 1;
    if (this.#events >= this.#limits.events) this.cut = true;
    switch (event.type) {
      case "text":
        return this.#said(this.#wholeText.push(this.#bounded(event.text)));
      case "thinking":
        return this.#thought(this.#wholeThinking.push(this.#bounded(event.text)));
      case "call":
        return this.#called(event);
      case "usage":
        this.counted = { ...this.counted, ...event };
        return null;
      case "stop":
        this.stop = event.stop;
        return null;
      case "note":
        this.notes.push(event.text);
        return null;
      default:
        return event satisfies never;
    }
  }

  /** The calls, and the rest that was held back as events. `raw` is what the server could not read. */
  end(tools: OfferedTools, raw: string | null): Ended {
    const rest = raw?.startsWith(this.#content) === true ? raw.slice(this.#content.length) : (raw ?? "");
    const thought = this.#thought(this.#wholeThinking.end());
    const said = this.#shownText(this.#written.push(this.#pending + this.#wholeText.end() + rest));
    const { prose, ...written } = this.#written.end();
    const native = this.#native.end(tools);
    const withdrawn = !prose.startsWith(this.text);
    if (withdrawn) this.#withdraw();
    const left = this.#shownText(prose.slice(this.text.length));
    const events: readonly (ProviderEvent | null)[] = withdrawn
      ? [{ type: "thinking", text: this.thinking }, left]
      : [thought, said, left];
    return {
      withdrawn,
      events: events.filter((event) => event !== null),
      found: {
        calls: [...native.calls, ...written.calls],
        malformed: [...native.malformed, ...written.malformed],
      },
    };
  }

  /** All of it was thoughts, and none of it may be shown. */
  get onlyThought(): boolean {
    return this.thinking !== "" || this.#content.trim() !== "";
  }

  #withdraw(): void {
    this.thinking += this.text;
    this.text = "";
  }

  #said(piece: string): ProviderEvent | null {
    this.#content += piece;
    this.#pending += piece;
    if (this.#pending.length * PACE < this.#content.length) return null;
    const ready = this.#pending;
    this.#pending = "";
    return this.#shownText(this.#written.push(ready));
  }

  #shownText(text: string): ProviderEvent | null {
    if (text === "") return null;
    this.text += text;
    this.shown ||= text.trim() !== "";
    return { type: "text", text };
  }

  #thought(text: string): ProviderEvent | null {
    this.thinking += text;
    return text === "" ? null : { type: "thinking", text };
  }

  #called(part: Extract<WireEvent, { readonly type: "call" }>): ProviderEvent {
    const args = this.#bounded(part.args ?? "");
    const { id, name: called, ...rest } = part;
    const given = {
      ...rest,
      ...(id === undefined ? {} : { id: this.#bounded(id) }),
      ...(called === undefined ? {} : { name: this.#bounded(called) }),
    };
    const { place, name } = this.#native.take({ ...given, args });
    this.shown = true;
    return { type: "call", index: place, name, text: args };
  }

  #bounded(piece: string): string {
    const room = this.#limits.characters - this.#characters;
    this.#characters += piece.length;
    if (piece.length <= room) return piece;
    this.cut = true;
    return piece.slice(0, Math.max(0, room));
  }
}
