import type { ToolOffer } from "../core/provider.ts";
import { nearest } from "../core/spelling.ts";

/** What a name in a call stands for: the name of one tool that was offered, or words for the model. */
export type Named = { readonly name: string } | { readonly wrong: string };

const LONGEST_SHOWN = 80;

/** The tools of one request by name: exactly, and else by what models do to names. A misspelling is told, never followed. */
export class ToolNames {
  readonly #exact: ReadonlySet<string>;
  readonly #folded = new Map<string, string[]>();

  constructor(tools: readonly ToolOffer[]) {
    this.#exact = new Set(tools.map(({ name }) => name));
    for (const name of this.#exact) {
      const fold = folded(name);
      this.#folded.set(fold, [...(this.#folded.get(fold) ?? []), name]);
    }
  }

  find(given: string): Named {
    if (this.#exact.has(given)) return { name: given };
    const shown = JSON.stringify(given.slice(0, LONGEST_SHOWN).toWellFormed());
    const candidates = this.#folded.get(folded(given)) ?? [];
    const [only, other] = candidates;
    if (only !== undefined && other === undefined) return { name: only };
    if (only !== undefined)
      return { wrong: `${shown} may be any of ${candidates.join(", ")}: give one of them.` };
    const known = [...this.#exact];
    if (known.length === 0) return { wrong: `No tool can be called now; ${shown} was not run.` };
    const meant = given.length <= LONGEST_SHOWN ? nearest(given, known) : undefined;
    const hint = meant === undefined ? "" : ` Did you mean ${meant}?`;
    return { wrong: `There is no tool ${shown}; there are ${known.join(", ")}.${hint}` };
  }
}

/** `functions.ReadFile:0` and `read-file` are read_file. */
const folded = (name: string): string =>
  name
    .trim()
    .replace(/^(?:functions|tools|default_api)\./, "")
    .replace(/:\d{1,9}$/, "")
    .replaceAll(/[-_]/g, "")
    .toLowerCase();
