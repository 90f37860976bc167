import { realpath } from "node:fs/promises";
import path from "node:path";
import { formatSize } from "../core/wording.ts";
import { isInside } from "../core/file-names.ts";
import { visible } from "../core/visible.ts";
import {
  entriesOf,
  type FoundExtensions,
  type Origin,
  type Problem,
  readFrontMatter,
  readText,
  type Skill,
  WRITABLE,
} from "./skill-folders.ts";

/** Slash commands: Markdown files whose text is sent in place of the user who types their name. */
export interface AddedCommand {
  /** The name to type: the file's name after those of its folders (`git:commit`). */
  readonly name: string;
  readonly description: string;
  readonly hint: string;
  readonly origin: Origin;
  /** For people. */
  readonly place: string;
  readonly text: string;
}

const PART = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const MAX_FILE = 128 * 1024;
const MAX_FILES = 200;
const MAX_DEPTH = 4;

type CommandWords = Omit<AddedCommand, "origin" | "place">;

/** `file`: relative to the folder of commands. Undefined if it is not a command, such as a script next to one. */
export function readCommand(text: string, file: string): CommandWords | string | undefined {
  if (!file.endsWith(".md")) return undefined;
  const parts = file.slice(0, -".md".length).split("/");
  if (parts.length > MAX_DEPTH || !parts.every((part) => PART.test(part)))
    return "its name cannot be typed as a command: use letters, digits, - . _, in at most three folders";
  if (Buffer.byteLength(text) > MAX_FILE) return `it is larger than ${formatSize(MAX_FILE)}`;
  const read = readFrontMatter(text);
  if (typeof read === "string") return read;
  const body = read.body.trim();
  if (body === "") return "it has no text";
  const description = read.values.get("description")?.trim() ?? "";
  return {
    name: parts.join(":"),
    description: description === "" ? firstLineOf(body) : description,
    hint: read.values.get("argument-hint")?.trim() ?? "",
    text: body,
  };
}

const firstLineOf = (body: string): string =>
  body
    .split("\n")
    .map((line) => line.replace(/^#+/, "").trim())
    .find((line) => line !== "") ?? "";

/** The commands in one of the user's folders; links are followed only to Markdown files. */
export async function ownCommands(folder: string, workspace: string): Promise<FoundExtensions<AddedCommand>> {
  const all: AddedCommand[] = [];
  const problems: Problem[] = [];
  const seen = new Set<string>();
  const waiting = [""];
  for (let at = waiting.shift(); at !== undefined; at = waiting.shift()) {
    const real = await realpath(path.join(folder, at)).catch(() => path.join(folder, at));
    if (seen.has(real)) continue;
    seen.add(real);
    const { entries, problems: unread } = await entriesOf(real);
    problems.push(...unread);
    for (const entry of entries) {
      if (entry.name.startsWith(".")) continue;
      const file = at === "" ? entry.name : `${at}/${entry.name}`;
      if (seen.size + all.length + waiting.length > MAX_FILES)
        return {
          all,
          problems: [...problems, { file: folder, why: `only its first ${MAX_FILES} files are used` }],
        };
      if (!entry.name.endsWith(".md")) {
        if (!entry.isFile() && file.split("/").length < MAX_DEPTH) waiting.push(file);
        continue;
      }
      const command = await ownCommand(path.join(folder, file), file, workspace);
      if ("why" in command) problems.push(command);
      else all.push(command);
    }
  }
  return { all, problems };
}

async function ownCommand(place: string, file: string, workspace: string): Promise<AddedCommand | Problem> {
  const real = await realpath(place).catch(() => place);
  if (!real.endsWith(".md")) return { file: place, why: "it is a link to a file that is not Markdown" };
  if (isInside(workspace, real)) return { file: place, why: WRITABLE };
  const read = await readText(real, MAX_FILE);
  const words = typeof read === "string" ? readCommand(read, file) : read.why;
  if (typeof words === "string" || words === undefined) return { file: place, why: words ?? "" };
  return { ...words, origin: "user", place };
}

/** The commands in a project's trusted files. `folders` in the order of their precedence. */
export function projectCommands(
  files: readonly { readonly path: string; readonly text: string }[],
  folders: readonly string[],
): FoundExtensions<AddedCommand> {
  const all: AddedCommand[] = [];
  const problems: Problem[] = [];
  for (const folder of folders)
    for (const { path: file, text } of files) {
      if (!file.startsWith(`${folder}/`)) continue;
      const words = readCommand(text, file.slice(folder.length + 1));
      if (typeof words === "string") problems.push({ file, why: words });
      else if (words !== undefined) all.push({ ...words, origin: "project", place: file });
    }
  return { all, problems };
}

/** A skill that can be typed: its text is sent. */
export const commandOfSkill = ({ name, description, hint, origin, place, body }: Skill): AddedCommand => ({
  name,
  description,
  hint,
  origin,
  place,
  text: body,
});

/** `/git:commit` and `/git/commit` are the same, ignoring case; the rest of the line is the argument. */
export function commandIn(
  line: string,
  commands: readonly AddedCommand[],
): { readonly command: AddedCommand; readonly argument: string } | undefined {
  const match = /^\/([A-Za-z0-9][A-Za-z0-9._:/-]{0,255})(?:\s+(.*))?$/s.exec(line.trim());
  const name = match?.[1]?.replaceAll("/", ":").toLowerCase();
  const command = commands.find((each) => each.name.toLowerCase() === name);
  return command === undefined ? undefined : { command, argument: (match?.[2] ?? "").trim() };
}

const MAX_SAID = 512 * 1024;
/** `\$1` stays `$1`; `$10` and `$ARGUMENTS_X` are not placeholders. */
const PLACES = /\\(\$(?:ARGUMENTS|[1-9]))(?!\w)|\$(ARGUMENTS|[1-9])(?!\w)/g;
const COMMANDS_OF_OTHERS = /(?:^|[^\w`])!`[^`\n]+`/;

/**
 * The text that is sent for the user, with its arguments filled in. A single pass, so that arguments are not read as
 * placeholders. Returns the reason if the text would be too long.
 */
export function expanded(
  { text: written, name }: AddedCommand,
  argument: string,
): { readonly text: string } | { readonly why: string } {
  // In the form that `harness trust` shows, so that nothing in it is hidden from a person who reads the request.
  const text = visible(written);
  const words = wordsOf(argument);
  const places = [...text.matchAll(PLACES)].filter(([, kept]) => kept === undefined);
  if (text.length + places.length * argument.length > MAX_SAID)
    return { why: `/${name} with its arguments is longer than ${formatSize(MAX_SAID)}` };
  const filled = text.replaceAll(PLACES, (_, kept: string | undefined, place: string | undefined) =>
    kept === undefined ? (place === "ARGUMENTS" ? argument : (words[Number(place) - 1] ?? "")) : kept,
  );
  const rest = places.length === 0 && argument !== "" ? `\n\nArguments: ${argument}` : "";
  return { text: filled + rest + (COMMANDS_OF_OTHERS.test(text) ? NOT_RUN : "") };
}

const NOT_RUN =
  "\n\n[harness] Nothing was run for this text: where it has !`command`, run that with your tools if you need what it prints.";

/** Splits like a shell, but without its other signs; an unclosed quote is an ordinary character. */
function wordsOf(argument: string): readonly string[] {
  const words = argument.match(/(?:"[^"]*"|'[^']*'|[^\s"']|["'])+/g) ?? [];
  return words.map((word) => word.replaceAll(/"([^"]*)"|'([^']*)'/g, "$1$2"));
}
