import { clipped } from "./excerpt.ts";
import { untagged } from "./untrusted.ts";

/** Characters of an entry, and of the whole; what matters least stands last. */
const LINE = 200;
const MOST = 9000;

/** What goes on in place of older messages. */
export interface Artifact extends Readonly<Record<Section, readonly string[]>> {
  /** Of a model that did not write the form. */
  readonly prose: string;
  readonly goal: string;
}

export const SECTIONS = ["constraints", "decisions", "open", "files", "done"] as const;
export type Section = (typeof SECTIONS)[number];

/** Entries that are kept of each list. */
export const LIMITS: Readonly<Record<Section, number>> = {
  constraints: 12,
  decisions: 16,
  open: 8,
  files: 12,
  done: 12,
};

const TITLES: Readonly<Record<Section, string>> = {
  constraints: "Constraints",
  decisions: "Decisions",
  open: "Open",
  files: "Files",
  done: "Done",
};

/** An entry of a list, on one line. */
export const entryOf = (text: string): string =>
  clipped(
    text
      .replace(/\s+/g, " ")
      .replace(/^[-*•]\s/, "")
      .trim(),
    LINE,
  );

/** As the model reads it. */
export function renderArtifact({ prose, goal, ...sections }: Artifact): string {
  const parts = SECTIONS.filter((name) => sections[name].length > 0).map(
    (name) => `${TITLES[name]}:\n${sections[name].map((line) => `- ${line}`).join("\n")}`,
  );
  const whole = [prose, goal === "" ? "" : `Goal: ${goal}`, ...parts]
    .filter((part) => part !== "")
    .join("\n");
  return clipped(untagged(whole), MOST);
}

/** A text that was rendered, or prose. */
export function parseArtifact(text: string): Artifact {
  const found: Record<Section, string[]> = { constraints: [], decisions: [], open: [], files: [], done: [] };
  const prose: string[] = [];
  let goal = "";
  let section: Section | undefined;
  for (const line of text.split("\n")) {
    const title = SECTIONS.find((name) => line === `${TITLES[name]}:`);
    if (title !== undefined) section = title;
    else if (goal === "" && line.startsWith("Goal: ")) goal = line.slice(6);
    else if (section !== undefined && line.startsWith("- ")) found[section].push(entryOf(line));
    else prose.push(line);
  }
  return { ...found, goal, prose: prose.join("\n").trim() };
}
