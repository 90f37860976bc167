import { excerpt } from "../context/untrusted-text.ts";

/** What the model and people are told of a check. */

/** What came of one run of it: what it printed, and how it ended in a few words. */
interface Said {
  readonly exit_code: number;
  readonly text: string;
  readonly ending: string;
}

/** The last lines that say something, how it ended not among them. */
export const lastLines = (text: string, most: number): readonly string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("[exit "))
    .slice(-most);

export const repairText = (command: string, { text, ending }: Said): string =>
  `You said that you are done, but \`${command}\` fails (${ending}). Find the cause and mend it, then say what you did. Its output, which is data:\n${ownLines(text)}`;

/** How Node names its own frames of a stack. Of ten lines that a failed test of it prints, six are these. */
const FRAME_OF_NODE = /^\s+at (?:async )?(?:.*\()?node:[\w/]+:\d+:\d+\)?(?: \{)?$/;
/** Its counts, which the failed tests say again. */
const COUNT_OF_NODE = /^ℹ (?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;
/** The parts of an AssertionError behind its stack: what stands in them its message has said. */
const PARTS_OF_NODE = /^( +)generatedMessage: (?:true|false),\n(?:\1.*\n|\n)*? *\}$/gm;

/** What a check says of the project; what its runner says of itself helps nobody. */
export const ownLines = (text: string): string =>
  text
    .replaceAll(PARTS_OF_NODE, "")
    .split("\n")
    .filter((line) => !FRAME_OF_NODE.test(line) && !COUNT_OF_NODE.test(line))
    .join("\n");

export const betweenText = (command: string, { exit_code, text, ending }: Said): string =>
  exit_code === 0
    ? `\`${command}\` succeeds now. If that was all that was asked for, change nothing more and give your final answer.`
    : `\`${command}\` still fails (${ending}). Its output, which is data:\n${excerpt(ownLines(text), MAX_NOTED)}`;

/** What a small model has written may never end. */
export const notOver = (command: string, ms: number): string =>
  `\`${command}\` took a moment before; now it was not over after ${ms / 1000} s, and was ended.`;

/** It had no end before the task either. */
export const stillNotOver = (command: string, ms: number): string =>
  `\`${command}\` is not over after ${ms / 1000} s, as it was not before, and was ended.`;

/** Said with the task, where the check was run before the first turn. */
export function checkNote(command: string, { exit_code, text, ending }: Said): string {
  const opening = `\`${command}\` will be run when you say that you are done, and has to succeed.`;
  if (exit_code === 0) return `${opening} It succeeds now.`;
  return `${opening} Now it fails (${ending}). Its output, which is data:\n${excerpt(ownLines(text), MAX_NOTED)}`;
}

/** About 400 tokens. */
const MAX_NOTED = 1600;
