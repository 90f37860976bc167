/** Which files of a project belong to what it brings because they are named there: trusted with it, or not at all. */
import path from "node:path";
import { parse } from "jsonc-parser";

export interface NamedFiles {
  /** Relative to the project's top, or absolute. */
  readonly files: readonly string[];
  /** The project's own folder is also named in a way that could mean any of its files: then all of them belong to it. */
  readonly any: boolean;
}

/** The Dockerfile of a dev container, if the container names one. `folder` is that of the file. */
export function dockerfileOf(text: string, folder: string): NamedFiles {
  const value = parsed(text);
  const build = recordOf(value["build"]);
  const files = [build["dockerfile"], build["dockerFile"], value["dockerFile"], value["dockerfile"]]
    .filter((name) => typeof name === "string")
    .map((name) => (path.isAbsolute(name) ? name : path.join(folder, name)));
  return { files, any: false };
}

const OWN = ".harness";

/** A name within a text for a shell that ends where the shell ends it too. */
const IN_TEXT =
  /(?<=^|[\s"'=:;&|(<>`])(?:\.\/)?\.harness\/(?!\/)([\p{L}\p{M}\p{N}_./+@-]*[\p{L}\p{M}\p{N}_])(?=["']*(?:$|[\s;&|()<>`]))/gu;
/** A word of a list is passed on as it is. */
const WHOLE_WORD = /^(?:\.\/)?\.harness\/(?!\/)([^\0]+)$/;
/** The word after this one is a text for a shell. */
const BEFORE_TEXT = /^-\w*c$/;

/** Files of `.harness` that commands start. Files elsewhere in the project are where the model works: not these. */
export function filesInCommands(text: string): NamedFiles {
  const commands = commandsIn(parsed(text));
  const found = commands.flatMap(({ words, isList }) =>
    words.map((word, at) => filesIn(word, isList && !BEFORE_TEXT.test(words[at - 1] ?? ""))),
  );
  const isAnyFolder = commands.some(({ folder }) => folder.includes(OWN));
  return { files: found.flatMap(({ files }) => files), any: isAnyFolder || found.some(({ any }) => any) };
}

function filesIn(word: string, isWhole: boolean): NamedFiles {
  const [, whole] = isWhole ? (WHOLE_WORD.exec(word) ?? []) : [];
  if (whole !== undefined) return { files: [`${OWN}/${whole}`], any: false };
  const files = [...word.matchAll(IN_TEXT)].map(([, name = ""]) => `${OWN}/${name}`);
  return { files, any: word.replaceAll(IN_TEXT, "").includes(OWN) };
}

interface FoundCommand {
  readonly words: readonly string[];
  /** The words are passed on as they are; otherwise a single one is a text for a shell. */
  readonly isList: boolean;
  /** Where it starts, if that is said. */
  readonly folder: string;
}

/** Every command, in whichever level of a table its kind has it. */
function commandsIn(value: unknown): readonly FoundCommand[] {
  return [value, ...innerOf(value)].flatMap(innerOf).map((entry) => {
    const { command, args, cwd } = recordOf(entry);
    return {
      words: [command, args].flat(2).filter((word) => typeof word === "string"),
      isList: Array.isArray(command) || Array.isArray(args),
      folder: typeof cwd === "string" ? cwd : "",
    };
  });
}

const innerOf = (value: unknown): readonly unknown[] =>
  typeof value === "object" && value !== null ? Object.values(value) : [];

/** A text nested deeper than the parser can go names nothing, and cannot be used either. */
function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return recordOf(parse(text.replace(/^\uFEFF/, ""), [], { allowTrailingComma: true }));
  } catch {
    return {};
  }
}

const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
