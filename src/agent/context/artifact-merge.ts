import { type Artifact, LIMITS, parseArtifact, type Section } from "./artifact-text.ts";

/** Part of the words that another line must have: to say the same, and to settle an open point in other words. */
const SAME = 0.8;
const SETTLED = 0.6;

/**
 * The new artifact with what the one before it said and it left out. Small models drop entries each time they rewrite a
 * list, and after three summaries nothing that was agreed at the start would be left; what is kept too long costs a line.
 * An open point goes when something done or decided says the same.
 */
export function mergeArtifacts(earlier: string, now: Artifact): Artifact {
  const before = parseArtifact(earlier);
  const settled = [...now.done, ...now.decisions];
  const older = { ...before, open: before.open.filter((line) => !says(settled, line, SETTLED)) };
  const both = (name: Section): readonly string[] => {
    const own = [...now[name], ...now.prose.split(/(?<=[.!?])\s|\n/)];
    return [...now[name], ...older[name].filter((line) => !says(own, line, SAME))].slice(0, LIMITS[name]);
  };
  return {
    prose: now.prose,
    goal: now.goal === "" ? before.goal : now.goal,
    constraints: both("constraints"),
    decisions: both("decisions"),
    open: both("open"),
    files: both("files"),
    done: both("done"),
  };
}

function says(lines: readonly string[], line: string, part: number): boolean {
  const words = wordsOf(line);
  return lines.some((other) => {
    const known = new Set(wordsOf(other));
    return words.filter((word) => known.has(word)).length >= words.length * part;
  });
}

/** Short words say little; numbers do. */
const WORD = /[\p{L}\p{N}][\p{L}\p{N}_./-]+[\p{L}\p{N}]|\p{N}+/gu;

const wordsOf = (line: string): readonly string[] => line.toLowerCase().match(WORD) ?? [line];
