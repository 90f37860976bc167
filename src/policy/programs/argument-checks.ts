import { commandsFromStdin, reachesAnyway } from "./argument-roles.ts";
import { type Arg, type Found, type Reader, UNKNOWN, type Use } from "./program-model.ts";

/**
 * Many argument parsers take a word with a leading dash for an option, never for the value of the option before it. So
 * no such word is accepted as a value here, nor among the options before a sub-command: `npm --x -y test`. For `-C=x`,
 * some parsers take the value `x`, others `=x`. `-tc x` may be `-t` and `-c x` although `-t` takes a value (yargs,
 * minimist, commander). `@file` may stand for arguments in a file.
 */
export const ARGUMENT_READERS: Readonly<Record<string, Reader>> = {
  "values are no options": (use) => ambiguities(use, false, false),
  "values are no options, letters are split": (use) => ambiguities(use, true, false),
  "values are no options, @file holds arguments": (use) => ambiguities(use, false, true),
  /** Exempts a program from the check of `@file` that its family has. */
  "no @files": (use) =>
    use.operands
      .filter(({ value }) => value.startsWith("@"))
      .map((arg) => use.doubt("option.loads-code", arg)),
  /** `NAME=value` sets a variable; other words are file names. */
  "no assignments": (use) =>
    use.operands.filter(({ value }) => value.includes("=")).map((arg) => use.doubt("operand.unknown", arg)),
  /** An argument that is an address is fetched. */
  "fetches addresses": ({ operands }) =>
    operands
      .filter(({ value }) => /^[a-z][a-z0-9+.-]*:\/?\//i.test(value) || /^(?:npm|jsr):/.test(value))
      .map(({ span }) => ({ kind: "network", hosts: [], span })),
  "network without a host too": reachesAnyway,
  /** Stdin is read as commands, some of which run on this machine. */
  "commands on stdin": commandsFromStdin,
};

function ambiguities(use: Use, splitsLetters: boolean, readsArguments: boolean): readonly Found[] {
  const found: Found[] = [];
  for (const given of [use.globals, use.options])
    for (const { name, value, span } of given) {
      if (value === null) continue;
      if (value.span !== span) found.push(...notAValue(value, use));
      else if (name.length === 2 && (value.value.startsWith("=") || (splitsLetters && splits(name, value))))
        found.push(use.doubt("option.unknown", value));
    }
  if (readsArguments)
    for (const arg of use.operands)
      if (arg.value.startsWith("@")) found.push(use.doubt("option.loads-code", arg));
  return found;
}

function notAValue(value: Arg, use: Use): readonly Found[] {
  if (value.value.startsWith(UNKNOWN)) return [use.doubt("word.dynamic", value)];
  return /^-\D/.test(value.value) ? [use.doubt("option.unknown", value)] : [];
}

/** `-ws` is npm's own short form of `--workspaces`. */
const splits = (name: string, { value }: Arg): boolean =>
  /^[a-z]/i.test(value) && !(name === "-w" && value === "s");
