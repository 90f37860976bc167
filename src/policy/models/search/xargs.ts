import { type Arg, type Found, type Model, UNKNOWN, type Use } from "../model.ts";
import { filled } from "./placeholder.ts";

const MARKS: ReadonlySet<string> = new Set(["-I", "-i", "--replace"]);
const FILES: ReadonlySet<string> = new Set(["-a", "--arg-file"]);
const SPLITS: ReadonlySet<string> = new Set(["-0", "--null", "-d", "--delimiter"]);
/** With these, the words come in parts, and a part may be read in another way than the whole. */
const PARTS: ReadonlySet<string> = new Set([
  "-n",
  "--max-args",
  "-L",
  "-l",
  "--max-lines",
  "-s",
  "--max-chars",
]);
const MOST_KNOWN = 64;

/** The command that it runs, with the words of stdin behind it or in place of a mark. */
function xargsEffects(use: Use): readonly Found[] {
  const { operands, options } = use;
  if (operands.length === 0) return [];
  const mark = options.findLast(({ name }) => MARKS.has(name));
  const given = givenWords(use);
  const known = given.every(({ kind }) => kind === "literal");
  const apart = known && given.length > 1 && options.some(({ name }) => PARTS.has(name));
  const runs = [given, ...(apart ? [[unknownWord(use)]] : [])].map((words) =>
    mark === undefined ? [...operands, ...words] : filled(operands, [mark.value?.value ?? "{}"], words),
  );
  const input = options.some(({ name }) => FILES.has(name)) ? use.input : "nothing";
  const unclear = mark?.value?.kind === "dynamic" ? [use.doubt("word.dynamic", mark.value)] : [];
  return [...unclear, ...runs.flatMap((words) => use.command(words, { input }))];
}

/** Stands for any number of words, whatever they are. */
function unknownWord({ input, span }: Use): Arg {
  return {
    kind: "dynamic",
    value: UNKNOWN,
    loose: true,
    span,
    feed: input === "network" ? input : "unknown",
  };
}

/** The words that come in: those of a text that is plain to see, or one that stands for any number of any. */
function givenWords(use: Use): readonly Arg[] {
  const { input, options } = use;
  if (typeof input !== "string" && input.found === true)
    return [{ kind: "glob", value: input.text.trim(), span: input.span }];
  const special = options.some((option) => FILES.has(option.name) || SPLITS.has(option.name));
  if (special || typeof input === "string" || /[\\'"%]/.test(input.text)) return [unknownWord(use)];
  const byLine = options.some((option) => MARKS.has(option.name));
  const known = input.text
    .split(byLine ? "\n" : /\s+/)
    .map((value) => value.trim())
    .filter((value) => value !== "");
  if (known.length === 0 || known.length > MOST_KNOWN) return [unknownWord(use)];
  return known.map((value): Arg => ({ kind: "literal", value, span: input.span }));
}

export const XARGS: Model = {
  options: `-0oprtx -a:read -d: -E: -e? -I: -i? -L: -l? -n: -P: -s: --null --arg-file=read --delimiter= --eof=? --replace=?
    --max-lines=? --max-args= --open-tty --max-procs= --interactive --no-run-if-empty --max-chars= --show-limits
    --verbose --exit`,
  operands: "data*",
  strict: true,
  abbreviates: true,
  also: xargsEffects,
};

const SOURCES: ReadonlySet<string> = new Set([":::", ":::+", "::::", "::::+"]);

/** Never without a question: its options are many, and it runs texts by a shell. The command is looked at for its dangers. */
function parallelEffects(use: Use): readonly Found[] {
  const from = use.args.findIndex(({ value }) => !value.startsWith("-") && !/^\d+%?$/.test(value));
  const rest = from === -1 ? [] : use.args.slice(from);
  const end = rest.findIndex(({ value }) => SOURCES.has(value));
  const command = end === -1 ? rest : rest.slice(0, end);
  const given = end === -1 ? [] : rest.slice(end + 1).filter(({ value }) => !SOURCES.has(value));
  const asks: Found = { kind: "unknown", doubt: "command.escapes", what: use.program, span: use.span };
  const [first] = given;
  const unknown: Arg = { kind: "dynamic", value: UNKNOWN, span: use.span };
  const inputs = command.length === 0 && first !== undefined ? given.flatMap((text) => use.shell(text)) : [];
  const ran =
    command.length === 0 ? [] : use.command([...filled(command, ["{}"], [unknown]), ...given, unknown]);
  return [asks, ...inputs, ...ran];
}

export const PARALLEL: Model = { reads: parallelEffects };
