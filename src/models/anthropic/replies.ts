import type { ToolCall } from "../../core/messages.ts";
import { USUAL_ID } from "../history/fitted-ids.ts";
import type { Fields } from "../http/fields.ts";

const MOST = 500;

/**
 * Replies with signed thoughts, block for block as they came. A transcript has no room for signatures, and the API
 * takes thoughts back only unchanged, in their places, and all of them. A reply that the transcript tells in another
 * way is not known here; after a restart none is.
 */
export class Replies {
  readonly #kept = new Map<string, readonly Fields[]>();

  keep(content: readonly Fields[]): void {
    if (!content.some(({ type }) => type === "thinking" || type === "redacted_thinking")) return;
    if (content.some(({ id = "_" }) => !USUAL_ID.fits.test(String(id)))) return;
    const key = keyOf(
      content.map(({ text }) => (typeof text === "string" ? text : "")).join(""),
      content.filter(({ type }) => type === "tool_use").map(({ id, name, input }) => [id, name, input]),
    );
    this.#kept.delete(key);
    this.#kept.set(key, content);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MOST) break;
      this.#kept.delete(oldest);
    }
  }

  readonly of = (text: string, calls: readonly ToolCall[]): readonly Fields[] | undefined =>
    this.#kept.get(
      keyOf(
        text,
        calls.map(({ id, name, args }) => [id, name, args]),
      ),
    );
}

const keyOf = (text: string, calls: readonly unknown[]): string => JSON.stringify([text, calls]);
