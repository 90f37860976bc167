import { readPattern } from "./glob.ts";
import { type IgnoreRules, isIgnored, LONGEST_RULES, readIgnore } from "./ignore.ts";

/** A file of ignore rules, and the folder that it stands in; the workspace itself is the empty text. */
export interface IgnoreList {
  readonly folder: string;
  readonly text: string;
  /** What to do with a list that is too long: hide all of its folder, or obey what was read of it. */
  readonly tooLong: "hide" | "cut";
}

/**
 * Whether a path of the workspace is left out by lists of it and of the folders above it, given from the top down: what
 * stands further down counts over what stands above.
 */
export function nestedIgnore(lists: readonly IgnoreList[]): (path: string, isFolder: boolean) => boolean {
  const rules = lists.flatMap(rulesBelow);
  const hidden = lists.filter((list) => list.tooLong === "hide" && list.text.length > LONGEST_RULES);
  return (path, isFolder) =>
    hidden.some(({ folder }) => folder === "" || path.startsWith(`${folder}/`)) ||
    (rules.length > 0 && isIgnored({ rules, tooLong: false }, path, isFolder));
}

function rulesBelow({ folder, text }: IgnoreList): IgnoreRules["rules"] {
  const { rules } = readIgnore(text.length > LONGEST_RULES ? wholeLines(text) : text);
  if (folder === "") return rules;
  const above = folder.split("/").map((name) => readPattern(plain(name))?.[0]);
  return rules.map((rule) => ({
    ...rule,
    anyDepth: false,
    names: rule.anyDepth ? [...above, undefined, ...rule.names] : [...above, ...rule.names],
  }));
}

const wholeLines = (text: string): string =>
  text.slice(0, Math.max(text.lastIndexOf("\n", LONGEST_RULES - 1), 0));

/** A name in which nothing stands for anything else. */
const plain = (name: string): string => name.replace(/[\\*?[]/g, String.raw`\$&`);
