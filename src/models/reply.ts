import type { ProviderEvent, Stop } from "../core/provider.ts";
import type { Counted } from "./accounting/usage.ts";
import { NativeCalls } from "./native-calls.ts";
import type { Limits } from "./timeouts.ts";
import type { ToolNames } from "./tool-names.ts";
import { WholeText } from "./whole-text.ts";
import type { WireEvent } from "./wire.ts";
import type { ReadCalls, WrittenCalls } from "./written-calls.ts";

/** What one attempt brings, as it comes. */
export class Reply {
  text = "";
  thinking = "";
  stop: Stop = "unknown";
  counted: Counted = {};
  readonly notes: string[] = [];
  /** A person has seen something that is no thought. */
  shown = false;
  /** It was ended here, as it was too long. */
  cut = false;
  /** Anything came at all. */
  begun = false;
  #content = "";
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

  /** The rest that was held back, as events; and the calls. `raw` is what the server could not read. */
  end(
    names: ToolNames,
    raw: string | null,
  ): { readonly events: readonly ProviderEvent[]; readonly found: ReadCalls } {
    const rest = raw?.startsWith(this.#content) === true ? raw.slice(this.#content.length) : (raw ?? "");
    const certain = this.#written.push(this.#wholeText.end() + rest);
    const written = this.#written.end();
    const events = [this.#thought(this.#wholeThinking.end()), this.#shownText(certain + written.prose)];
    const native = this.#native.end(names);
    return {
      events: events.filter((event) => event !== null),
      found: {
        calls: [...native.calls, ...written.calls],
        malformed: [...native.malformed, ...written.malformed],
      },
    };
  }

  #said(piece: string): ProviderEvent | null {
    this.#content += piece;
    return this.#shownText(this.#written.push(piece));
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
    const { place, name } = this.#native.take({ ...part, args });
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
