import { readFileSync } from "node:fs";
import path from "node:path";
import { nearest } from "../core/spelling.ts";
import { packageRoot } from "./package-root.ts";

interface Advice {
  readonly message: string;
  readonly remedy: string;
}

const UNKNOWN = /^command (\S+) not found$/;
const SPARE = /^Unexpected arguments?: (.*)$/;
/** Commands about a command: its words stand behind dashes. */
const BEHIND_DASHES: ReadonlySet<string> = new Set(["policy check", "policy allow", "sandbox exec"]);

/** A usage error with the help to read: of the command, of its topic, or of the one that was probably meant. */
export function adviceFor(message: string, words: readonly string[]): Advice {
  const given = leading(words);
  const ids = commandIds();
  const topics = ids.flatMap((id) => id.split(" ").slice(0, -1));
  const asked = UNKNOWN.exec(message)?.[1]?.replaceAll(":", " ");
  if (asked === undefined) {
    const known = longestKnown(given, ids);
    return { message, remedy: usage(known, SPARE.exec(message)?.[1]?.replaceAll(", ", " ")) };
  }
  const known = longestKnown(asked.split(" "), ids);
  if (known !== "") {
    const word = asked.slice(known.length + 1);
    return { message: `${known}: unexpected word: ${word}`, remedy: usage(known, word) };
  }
  const near = nearest(
    asked,
    ids.filter((id) => !HIDDEN.has(id)),
  );
  const found = `command ${asked} not found`;
  if (near !== undefined) return { message: `${found}; did you mean ${near}?`, remedy: help(near) };
  return { message: found, remedy: help(longestKnown(given, topics)) };
}

const HIDDEN: ReadonlySet<string> = new Set(["setup", "teardown"]);

const help = (command: string): string =>
  ["harness", command, "--help"].filter((word) => word !== "").join(" ");

/** What to type instead; where words are spare that were meant as a command, that command. */
const usage = (command: string, words: string | undefined): string =>
  words !== undefined && BEHIND_DASHES.has(command) ? `harness ${command} -- ${words}` : help(command);

function leading(words: readonly string[]): readonly string[] {
  const end = words.findIndex((word) => !/^[a-z]+$/.test(word));
  return end === -1 ? words : words.slice(0, end);
}

/** The longest row of leading words that is known; empty when none is. */
function longestKnown(words: readonly string[], known: readonly string[]): string {
  const rows = words.map((_, index) => words.slice(0, index + 1).join(" "));
  return rows.findLast((row) => known.includes(row)) ?? "";
}

/** Every command, its words apart by blanks. A build that lost its manifest still reports its errors. */
function commandIds(): readonly string[] {
  try {
    const text = readFileSync(path.join(packageRoot, "oclif.manifest.json"), "utf8");
    const { commands } = JSON.parse(text) as { commands: Record<string, unknown> };
    return Object.keys(commands).map((id) => id.replaceAll(":", " "));
  } catch {
    return [];
  }
}
