import { visible } from "../../core/visible.ts";

/** What is pasted as it is; anything longer would fill the screen. */
const SHORT = 400;
const TOKEN = /\[pasted (?:\d+ lines|\d+ characters) #(\d+)\]/g;

/** Texts of several lines in a line that is edited: a token stands for each until it is sent. */
export class Pastes {
  readonly #kept: string[] = [];

  /** As it may stand in a line. */
  folded(text: string): string {
    const shown = visible(text).replaceAll("\t", "  ");
    if (!shown.includes("\n") && shown.length <= SHORT) return shown;
    const at = this.#kept.indexOf(text) === -1 ? this.#kept.push(text) : this.#kept.indexOf(text) + 1;
    const lines = text.split("\n").length;
    return lines > 1 ? `[pasted ${lines} lines #${at}]` : `[pasted ${text.length} characters #${at}]`;
  }

  /** As it was. */
  unfolded(line: string): string {
    return line.replaceAll(TOKEN, (token, number: string) => this.#kept[Number(number) - 1] ?? token);
  }
}
