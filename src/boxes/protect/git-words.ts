import { EXIT, HarnessError } from "../../core/errors.ts";

/** The words after a subcommand of git, read as git itself reads them. */
export interface GitWords {
  /** In order, by their names without dashes; the value is null for an option that takes none. */
  readonly options: readonly (readonly [name: string, value: string | null])[];
  readonly paths: readonly string[];
}

interface KnownOption {
  readonly takesValue: boolean;
  /** The values that the option accepts. */
  readonly value?: RegExp;
}

const flags = (names: string): readonly (readonly [string, KnownOption])[] =>
  names.split(" ").map((name) => [name, { takesValue: false }] as const);

const valued = (names: string, value?: RegExp): readonly (readonly [string, KnownOption])[] =>
  names
    .split(" ")
    .map((name) => [name, { takesValue: true, ...(value === undefined ? {} : { value }) }] as const);

/** The options that `add` and `commit` accept here. None of them names a program or a file elsewhere. */
const OPTIONS: ReadonlyMap<string, ReadonlyMap<string, KnownOption>> = new Map([
  [
    "add",
    new Map([
      ...flags("A u f v n N all update force verbose dry-run intent-to-add ignore-errors no-all renormalize"),
      ...flags("sparse"),
      ...valued("chmod", /^[+-]x$/),
    ]),
  ],
  [
    "commit",
    new Map([
      ...flags("a q v n s all quiet verbose no-verify signoff amend no-edit allow-empty allow-empty-message"),
      ...flags("only include reset-author dry-run no-gpg-sign no-post-rewrite"),
      ...valued("m message author date cleanup fixup squash trailer"),
    ]),
  ],
]);

/**
 * Git permutes: an option may follow a path, and the value of an option is the rest of its word or the next word,
 * whatever that is, even `--`. Options that git would complete (`--mess`) or whose value is optional (`-S`, `-u`) are
 * refused like everything else that is not in the table: only words that are read with certainty are passed on.
 */
export function readGitWords(verb: string, words: readonly string[]): GitWords {
  const known = OPTIONS.get(verb);
  if (known === undefined) throw refuseCommit(`git ${verb} is neither add nor commit`);
  const options: (readonly [string, string | null])[] = [];
  const paths: string[] = [];
  const rest = [...words];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === "--") return { options, paths: [...paths, ...rest] };
    if (!word.startsWith("-") || word === "-") paths.push(word);
    else if (word.startsWith("--")) options.push(readLong({ verb, word, known }, rest));
    else options.push(...readShort({ verb, word, known }, rest));
  }
  return { options, paths };
}

interface WordContext {
  readonly verb: string;
  readonly word: string;
  readonly known: ReadonlyMap<string, KnownOption>;
}

type Option = GitWords["options"][number];

function readLong(reading: WordContext, rest: string[]): Option {
  const { word, known } = reading;
  const equals = word.indexOf("=");
  const name = word.slice("--".length, equals < 0 ? undefined : equals);
  const option = name.length > 1 ? known.get(name) : undefined;
  if (option === undefined) throw unknown(reading, completed(name, known));
  if (!option.takesValue && equals >= 0) throw refuseCommit(`git ${reading.verb} ${name} takes no value`);
  if (!option.takesValue) return [name, null];
  return [name, valueOf(reading, option, equals < 0 ? rest.shift() : word.slice(equals + 1))];
}

/** Several options in one word; the first that takes a value takes the rest of the word. */
function readShort(reading: WordContext, rest: string[]): readonly Option[] {
  const { word, known } = reading;
  const options: Option[] = [];
  for (let at = 1; at < word.length; at += 1) {
    const letter = word.charAt(at);
    const option = known.get(letter);
    if (option === undefined) throw unknown(reading, "");
    if (!option.takesValue) {
      options.push([letter, null]);
      continue;
    }
    const left = word.slice(at + 1);
    options.push([letter, valueOf(reading, option, left === "" ? rest.shift() : left)]);
    return options;
  }
  return options;
}

function valueOf(
  { verb, word }: WordContext,
  { value: fits }: KnownOption,
  value: string | undefined,
): string {
  if (value === undefined) throw refuseCommit(`git ${verb} ${word} has no value`);
  if (fits !== undefined && !fits.test(value))
    throw refuseCommit(`git ${verb} ${word} takes no such value: ${value}`);
  return value;
}

const completed = (name: string, known: ReadonlyMap<string, KnownOption>): string => {
  const candidates = [...known.keys()].filter((each) => name.length > 1 && each.startsWith(name));
  return candidates.length === 0 ? "" : `; write it out: --${candidates.join(", --")}`;
};

const unknown = ({ verb, word }: WordContext, more: string): HarnessError =>
  refuseCommit(`git ${verb} ${word} is not among the options that it takes here${more}`);

export const refuseCommit = (why: string): HarnessError =>
  new HarnessError(EXIT.refused, `no commit from inside this repository: ${why}`, "commit it yourself");
