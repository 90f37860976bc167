import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { diskTroubleOf, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { nearest } from "../core/wording.ts";
import { inertJson, visible, visibleWhole } from "../core/visible.ts";
import { hangingIndent } from "../render/tty/columns.ts";
import { type Output, stderr, stdout, styleText } from "../render/tty/output.ts";
import { packageRoot } from "./host.ts";

interface Failure {
  readonly exit: number;
  /** Empty if the command has already reported everything. */
  readonly message: string;
  readonly remedy: string;
}

/** The message and exit code for an error that ended a command. */
export function describeFailure(thrown: unknown, words: readonly string[]): Failure {
  if (thrown instanceof SuppressedError) return describeFailure(firstError(thrown), words);
  if (thrown instanceof HarnessError)
    return { exit: thrown.exit, message: unwrapped(thrown.message), remedy: thrown.remedy };
  const exit = oclifExit(thrown);
  if (exit === undefined) {
    const remedy = diskRemedy(thrown);
    if (remedy !== undefined) return { exit: EXIT.failed, message: reasonOf(thrown), remedy };
    const detail = thrown instanceof Error && process.env["HARNESS_DEBUG"] ? thrown.stack : reasonOf(thrown);
    return { exit: EXIT.failed, message: `internal error: ${detail}`, remedy: "HARNESS_DEBUG=1 shows where" };
  }
  if (thrown instanceof Error && "code" in thrown && thrown.code === "EEXIT")
    return { exit, message: "", remedy: "" };
  return { exit: EXIT.usage, ...adviceFor(firstParagraph(reasonOf(thrown)), words) };
}

/** oclif wraps a headline and advice around the errors of flag parsers. */
const unwrapped = (message: string): string =>
  message.replace(/^Parsing --[\w-]+ \n\t(.*)\nSee more help with --help$/s, "$1");

/**
 * How a person can mend trouble with harness's own files: a full or read-only disk, or a place in which no folder can
 * be made.
 */
function diskRemedy(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const { syscall, path: at } = thrown as NodeJS.ErrnoException;
  const trouble = diskTroubleOf(thrown);
  if (syscall === undefined || (syscall !== "mkdir" && trouble !== "full" && trouble !== "read-only"))
    return undefined;
  const near = at === undefined ? "" : ` ${standing(path.dirname(at))}`;
  return `ls -ld${near === "" ? " ." : near}; df -h${near}   (to use another place: XDG_STATE_HOME, XDG_CACHE_HOME, XDG_CONFIG_HOME)`;
}

/** The folder itself, or the nearest existing one above it: a missing folder cannot be examined. */
const standing = (folder: string): string =>
  existsSync(folder) || path.dirname(folder) === folder ? folder : standing(path.dirname(folder));

/**
 * The error to report if a failure was followed by another one in the clean-up: an error that a person can act on has
 * priority.
 */
function firstError({ suppressed, error }: SuppressedError): unknown {
  const known = suppressed instanceof HarnessError || suppressed instanceof SuppressedError;
  return known || !(error instanceof HarnessError) ? suppressed : error;
}

export function renderFailure({ exit, message, remedy }: Failure, json: boolean): void {
  if (json) {
    stdout.write(`${inertJson({ error: { message, remedy, exit_code: exit } })}\n`);
    return;
  }
  stderr.write(failureText({ message, remedy }, stderr));
}

const HEAD = "error: ";

/**
 * In a terminal, the message wraps with an indent; the command to type stays in one piece, so that it can be copied.
 */
export function failureText({ message, remedy }: Omit<Failure, "exit">, stream: Output): string {
  const head = styleText("red", HEAD.trim(), { stream });
  const indent = HEAD.length;
  const room = stream.columns ?? 0;
  const rows = visible(message)
    .split("\n")
    .map((row) => (row.length + indent < room ? row : hangingIndent(row, indent, { columns: room })));
  const next = remedy === "" ? "" : `  ${styleText("bold", "next:", { stream })} ${visible(remedy)}\n`;
  return `${head} ${rows.join("\n")}\n${next}`;
}

/** oclif marks its own errors, usage errors included, with the exit code. */
function oclifExit(thrown: unknown): number | undefined {
  if (typeof thrown !== "object" || thrown === null || !("oclif" in thrown)) return undefined;
  const { oclif } = thrown;
  if (typeof oclif !== "object" || oclif === null || !("exit" in oclif)) return undefined;
  return typeof oclif.exit === "number" ? oclif.exit : undefined;
}

/**
 * Strips what oclif adds: advice below a blank line or as `See more help with`, which our remedy replaces, and
 * headlines.
 */
const firstParagraph = (text: string): string =>
  text
    .replace(/\n*See more help with.*$/s, "")
    .replace(/^The following errors? occurred:\n\s*/, "")
    .replaceAll(/Missing required flag (?=\w)/g, "Missing required flag --")
    // Concerns flags that nobody has typed.
    .replace(/\n*Note: --[^]*$/, "")
    .replaceAll(
      /^\s*Parsing (--[\w-]+)\s+(\w)/gm,
      (_, flag: string, first: string) => `${flag}: ${first.toLowerCase()}`,
    )
    .replace(
      /^All of the following must be provided when using (--[\w-]+): (.+)$/,
      "$1 can only be used with $2",
    )
    .split("\n")
    .map(oncePerPair)
    .filter((line, at, lines) => lines.indexOf(line) === at)
    .join("\n")
    .trim();

/** oclif reports two flags that exclude each other once for each of them. */
const oncePerPair = (line: string): string => {
  const [, one, other] = /^\s*(--[\w-]+)=.* cannot also be provided when using (--[\w-]+)$/.exec(line) ?? [];
  if (one === undefined || other === undefined) return line;
  return `${[one, other].toSorted().join(" and ")} cannot be used together`;
};

/** Adds the value that was probably meant. */
function withNearest(message: string): string {
  const [, value, options = ""] = /^Expected (?:--[\w-]+=)?(\S+) to be one of: ([^\n]+)$/.exec(message) ?? [];
  const meant = value === undefined ? undefined : nearest(value.toLowerCase(), options.split(", "));
  return meant === undefined ? message : `${message}; did you mean ${meant}?`;
}

interface Advice {
  readonly message: string;
  readonly remedy: string;
}

const UNKNOWN = /^command (\S+) not found$/;
const NO_FLAG = /^Nonexistent flag: --([^=\s]+)/;
const SPARE = /^Unexpected arguments?: (.*)$/;
/** Commands that take another command, whose words stand after dashes. */
const BEHIND_DASHES: ReadonlySet<string> = new Set(["policy check", "policy allow", "sandbox exec"]);

/** A usage error with the help to read: of the command, of its topic, or of the command that was probably meant. */
function adviceFor(message: string, words: readonly string[]): Advice {
  const typed = leading(words);
  const commands = knownCommands();
  const ids = Object.keys(commands);
  const topics = ids.flatMap((id) => id.split(" ").slice(0, -1));
  const unknown = UNKNOWN.exec(message)?.[1]?.replaceAll(":", " ");
  if (unknown === undefined) return wordsAdvice(message, longestKnown(typed, ids), commands);
  const known = longestKnown(unknown.split(" "), ids);
  if (known !== "") return unexpected(known, unknown.slice(known.length + 1));
  const seen = ids.filter((id) => !HIDDEN.has(id));
  const [first = ""] = unknown.split(" ");
  const near =
    suggestCommand(unknown, seen) ??
    (topics.includes(first) ? undefined : nearest(first, [...seen, ...topics]));
  const found = `command ${unknown} not found`;
  if (near !== undefined) return { message: `${found}; did you mean ${near}?`, remedy: help(near) };
  return { message: found, remedy: help(longestKnown(typed, topics)) };
}

/** Advice on a command's own flags and words. */
function wordsAdvice(message: string, known: string, commands: Commands): Advice {
  const { flags = {}, args } = commands[known] ?? {};
  const flag = NO_FLAG.exec(message)?.[1];
  const meant = flag === undefined ? undefined : nearest(flag, Object.keys(flags));
  if (meant !== undefined) return { message: `${message}; did you mean --${meant}?`, remedy: help(known) };
  const spare = SPARE.exec(message)?.[1]?.replaceAll(", ", " ");
  const takesNone = args !== undefined && Object.keys(args).length === 0;
  if (takesNone && spare !== undefined) return unexpected(known, spare);
  return { message: withNearest(message), remedy: usage(known, spare) };
}

const unexpected = (command: string, words: string): Advice => ({
  message: `${command}: unexpected argument: ${words}`,
  remedy: usage(command, words),
});

/** Words that other programs use for the same thing. */
const ALIKE: readonly (readonly string[])[] = [
  ["rm", "remove", "delete", "del", "uninstall"],
  ["list", "ls"],
  ["show", "view", "cat", "info"],
  ["add", "new", "create"],
];

/** The command that was probably meant: one with a similar spelling, or the same one under another word. */
function suggestCommand(typed: string, ids: readonly string[]): string | undefined {
  const [topic = "", word = ""] = typed.split(" ");
  const spelt = nearest(typed, ids) ?? nearest(`${topic} ${word}`, ids);
  const others = ALIKE.find((row) => row.includes(word)) ?? [];
  return spelt ?? others.map((other) => `${topic} ${other}`).find((id) => ids.includes(id));
}

const HIDDEN: ReadonlySet<string> = new Set(["setup", "teardown"]);

const help = (command: string): string =>
  ["harness", command, "--help"].filter((word) => word !== "").join(" ");

/** What to type instead; if the extra words were meant as a command, the line that runs it. */
const usage = (command: string, words: string | undefined): string =>
  words !== undefined && BEHIND_DASHES.has(command) ? `harness ${command} -- ${words}` : help(command);

function leading(words: readonly string[]): readonly string[] {
  const end = words.findIndex((word) => !/^[a-z]+$/.test(word));
  return end === -1 ? words : words.slice(0, end);
}

/** The longest known sequence of leading words; empty if there is none. */
function longestKnown(words: readonly string[], known: readonly string[]): string {
  const rows = words.map((_, index) => words.slice(0, index + 1).join(" "));
  return rows.findLast((row) => known.includes(row)) ?? "";
}

type Named = Readonly<Record<string, unknown>>;
type Commands = Readonly<Record<string, { readonly flags?: Named; readonly args?: Named }>>;

/** All commands, with blanks between their words. A build that lost its manifest still reports its errors. */
function knownCommands(): Commands {
  try {
    const text = readFileSync(path.join(packageRoot, "oclif.manifest.json"), "utf8");
    const { commands } = JSON.parse(text) as { commands: Commands };
    return Object.fromEntries(
      Object.entries(commands).map(([id, command]) => [id.replaceAll(":", " "), command]),
    );
  } catch {
    return {};
  }
}

/** Reports what a person should know, but need not act on. */
export const noteTo =
  (quiet: boolean) =>
  (text: string): void => {
    if (!quiet) stderr.write(noteText(text));
  };

export const noteText = (text: string): string => `note: ${visibleWhole(text)}\n`;

/** A note with lines of its own: those after the first are indented, so none reads as a line of harness. */
export const longNote = (text: string): string =>
  `note: ${text.split("\n").map(visibleWhole).join("\n  ")}\n`;
