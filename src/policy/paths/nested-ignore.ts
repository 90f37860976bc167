import { hideBy, type IgnoreRules, LONGEST_RULES, readIgnore } from "./ignore.ts";

/** A file of ignore rules, and the folder that it stands in; the workspace itself is the empty text. */
export interface IgnoreList {
  readonly folder: string;
  readonly text: string;
  /**
   * It is there to hide: in any letter case, and where it is too long to be read all of its folder. Else it is obeyed as
   * git does on a system that tells letter cases apart, as far as it was read.
   */
  readonly strict: boolean;
}

/**
 * Lists of a workspace from the top down: what stands further down counts over what stands above. Each list is read once,
 * however many stand below it: there may be thousands, from a repository that nobody trusts.
 */
export class NestedIgnore {
  /** From the top down. */
  readonly #above: readonly NestedIgnore[];
  /** What the paths begin with that the list is of, and how many names that is. */
  readonly #start: string;
  readonly #depth: number;
  readonly #rules: IgnoreRules["rules"];
  readonly #strict: boolean;
  readonly #hidesAll: boolean;

  private constructor(above: readonly NestedIgnore[], { folder, text, strict }: IgnoreList) {
    const isLong = text.length > LONGEST_RULES;
    this.#above = above;
    this.#start = folder === "" ? "" : `${folder}/`;
    this.#depth = namesOf(folder).length;
    this.#strict = strict;
    this.#hidesAll = isLong && strict;
    this.#rules = this.#hidesAll ? [] : readIgnore(isLong ? wholeLines(text) : text).rules;
  }

  /** Where nothing is left out. */
  static none(): NestedIgnore {
    return new NestedIgnore([], { folder: "", text: "", strict: false });
  }

  /** With one list more, of a folder further down. */
  below(list: IgnoreList): NestedIgnore {
    return new NestedIgnore([...this.#above, this], list);
  }

  leavesOut(path: string, isFolder: boolean): boolean {
    const names = namesOf(path);
    const hidden = names.map(() => false);
    for (const list of [...this.#above, this])
      if (path.startsWith(list.#start)) list.#mark({ names, isFolder, hidden });
    return hidden.includes(true);
  }

  #mark({ names, isFolder, hidden }: Marked): void {
    if (this.#hidesAll) hidden.fill(true, this.#depth);
    if (this.#rules.length === 0) return;
    const inside = hidden.slice(this.#depth);
    const below = names.slice(this.#depth);
    hideBy(this.#rules, { names: below, isFolder, anyCase: this.#strict, hidden: inside });
    hidden.splice(this.#depth, inside.length, ...inside);
  }
}

interface Marked {
  readonly names: readonly string[];
  readonly isFolder: boolean;
  readonly hidden: boolean[];
}

const namesOf = (path: string): readonly string[] => path.split("/").filter((name) => name !== "");

const wholeLines = (text: string): string =>
  text.slice(0, Math.max(text.lastIndexOf("\n", LONGEST_RULES - 1), 0));
