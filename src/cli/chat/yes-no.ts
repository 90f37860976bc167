import { move } from "../../render/tty/output.ts";
import type { Piece } from "./keys.ts";

export type Reply = "yes" | "no" | "interrupt";

/** What is to be shown of a key, and the reply once it is given. */
export interface Step {
  readonly echo: string;
  readonly reply?: Reply;
}

/** Longer than any yes. */
const MOST = 40;

/** The keys after a question: only y or yes and Enter mean yes. What is pasted was not meant for it. */
export class YesNo {
  #typed = "";

  take(piece: Piece | undefined): Step {
    if (piece === undefined) return { echo: "\n", reply: "no" };
    if (piece.kind === "interrupt") return { echo: "^C\n", reply: "interrupt" };
    if (piece.kind !== "keys") return { echo: "" };
    // Arrows and the like are no part of an answer.
    let echo = "";
    for (const key of piece.text.replaceAll(/\u001B(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z]|.)?/g, "")) {
      if (key === "\r") return { echo: `${echo}\n`, reply: this.#reply() };
      if (key === "\u0004") return { echo: `${echo}\n`, reply: "no" };
      echo += this.#edit(key);
    }
    return { echo };
  }

  #edit(key: string): string {
    if (key === "\u007F" || key === "\b") {
      if (this.#typed === "") return "";
      this.#typed = this.#typed.slice(0, -1);
      return move("rubout");
    }
    if (!/^[ -~]$/.test(key) || this.#typed.length >= MOST) return "";
    this.#typed += key;
    return key;
  }

  #reply(): Reply {
    return /^\s*y(?:es)?\s*$/i.test(this.#typed) ? "yes" : "no";
  }
}
