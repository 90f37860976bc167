import type { Handoff } from "../../core/handoff.ts";
import { visibleLine } from "../../core/visible.ts";
import { fitted, widthOfStream } from "../../render/tty/fitted.ts";
import { type Output, styleText } from "../../render/tty/output.ts";

const MOST = 8;

/** What a person should look at before anything is run in the folder: each path once in a chat. */
export class Handed {
  readonly #told = new Set<string>();

  /** Empty where there is nothing new. */
  lines(handoff: readonly Handoff[], stream: Output): string {
    const fresh = handoff.filter((each) => !this.#told.has(keyOf(each)));
    for (const each of fresh) this.#told.add(keyOf(each));
    if (fresh.length === 0) return "";
    const rows = fresh.slice(0, MOST).map(({ path, tier, reason }) => {
      const mark = tier === "dangerous" ? "!" : "?";
      return `  ${mark} ${visibleLine(path.toWellFormed())}: ${reason}`;
    });
    const more = fresh.length - rows.length;
    const all = [
      "! to look at before you run anything here:",
      ...rows,
      ...(more > 0 ? [`  ${more} more: harness diff`] : []),
    ];
    const width = widthOfStream(stream);
    return all.map((line) => `${styleText("yellow", fitted(line, width), { stream })}\n`).join("");
  }
}

const keyOf = ({ path, tier, reason }: Handoff): string => [path, tier, reason].join("\0");
