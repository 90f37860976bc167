import { roleEffects } from "./argument-roles.ts";
import type { Arg, Found, Use, Reader } from "./program-model.ts";
import { fileEffects, inlineEffects, inputEffects, isStdin, isSwitch, onlyBash } from "./shell-builtins.ts";
import { escapes } from "./wrapper-programs.ts";

const has = ({ options }: Use, name: string): boolean => options.some((option) => option.name === name);

/** A text after -c, a file, or stdin. A single `-` before them ends the options, as `--` does. */
function shellEffects(use: Use): readonly Found[] {
  const [first, second] = use.operands[0]?.value === "-" ? use.operands.slice(1) : use.operands;
  if (has(use, "-c")) return first === undefined ? inputEffects(use) : use.shell(first);
  if (first === undefined || has(use, "-s") || isStdin(first)) return stdinCommands(use);
  if (has(use, "-n") && second === undefined)
    return [{ kind: "read", path: use.place(first), span: first.span }];
  return [fileEffects(first, use)];
}

/** Commands from stdin; judged where the text of stdin is known. */
function stdinCommands(use: Use): readonly Found[] {
  const { input } = use;
  if (typeof input === "string") return inputEffects(use);
  const text: Arg = { kind: "literal", value: input.text, span: input.span };
  const code: Found = { kind: "code", from: "input", path: null };
  const follows =
    input.rough !== true &&
    (use.program === "bash" || (use.program === "sh" && onlyBash(text, use).length === 0));
  return [follows ? { ...code, followed: true } : code, ...use.shell(text)];
}

/** `-o name`: one of the usual switches. */
const switchDoubts = (use: Use): readonly Found[] =>
  use.options.flatMap(({ name, value }) =>
    name !== "-o" || value === null || (value.kind === "literal" && isSwitch(value.value))
      ? []
      : [use.doubt("option.unknown", value)],
  );

function smallShellDoubts(use: Use): readonly Found[] {
  const [text] = use.operands;
  return has(use, "-c") && text !== undefined ? onlyBash(text, use) : [];
}

/** A program as text of an option, as a file, or from stdin. */
export function runner(inline: readonly string[]): (use: Use) => readonly Found[] {
  return (use) => {
    const texts = use.options.filter(({ name }) => inline.includes(name));
    if (texts.length > 0) return texts.map(({ value }) => inlineEffects(value ?? whole(use)));
    const [file] = use.operands;
    return file === undefined || file.value === "-" ? inputEffects(use) : [fileEffects(file, use)];
  };
}

const whole = ({ program, span }: Use): Arg => ({ kind: "dynamic", value: program, span });

/** `-i` changes the given files. */
function perl(use: Use): readonly Found[] {
  const texts = use.options.filter(({ name }) => name === "-e" || name === "-E");
  const inPlace = use.options.some(({ name }) => name === "-i");
  if (texts.length === 0) return runner([])(use);
  const files = use.operands.map((arg): Found => ({
    kind: inPlace ? "write" : "read",
    path: use.place(arg),
    span: arg.span,
  }));
  return [...texts.map(({ value }) => inlineEffects(value ?? whole(use))), ...files];
}

/** `ruby -c` runs nothing of the file; `perl -c` does. */
const onlyParses = ({ options, operands }: Use): boolean =>
  operands.length > 0 &&
  options.some(({ name }) => name === "-c") &&
  !options.some(({ name }) => name === "-e" || name === "-i");

const parsed = (file: Arg, use: Use): readonly Found[] =>
  roleEffects("check", file, use, { forced: false, recursive: false });

/** With `-i` the output of the program replaces the files. */
function ruby(use: Use): readonly Found[] {
  if (onlyParses(use)) return use.operands.flatMap((file) => parsed(file, use));
  const files = use.options.some(({ name }) => name === "-e") ? use.operands : use.operands.slice(1);
  const inPlace = use.options.some(({ name }) => name === "-i");
  return [
    ...runner(["-e"])(use),
    ...(inPlace ? files : []).map((arg): Found => ({ kind: "write", path: use.place(arg), span: arg.span })),
  ];
}

/** Settings that are only quantities. */
const HARMLESS_SETTINGS =
  /^(?:memory_limit|max_execution_time|display_errors|error_reporting|zend\.assertions|assert\.exception|date\.timezone)=[\w.-]*$/;
/** The modes of Xdebug. `debug` connects to a debugger; the last three write reports into the folder for temporary files. */
const XDEBUG_MODES = /^xdebug\.mode=(?:off|develop|coverage|debug|gcstats|profile|trace|,)*$/;
const DEBUGS = /[=,]debug\b/;
const REPORTS = /\b(?:gcstats|profile|trace)\b/;

/** A setting after `-d`: most of them load code, or name programs. */
function phpSetting(setting: Arg, use: Use): readonly Found[] {
  const found: Found = use.doubt("option.loads-code", setting);
  const { kind, value, span } = setting;
  if (kind !== "literal" || found.kind !== "unknown") return [found];
  const isMode = XDEBUG_MODES.test(value);
  const doubt: Found = HARMLESS_SETTINGS.test(value) || isMode ? { ...found, inside: true } : found;
  const effects: Found[] = [doubt];
  if (isMode && DEBUGS.test(value)) effects.push({ kind: "network", hosts: [], span });
  if (isMode && REPORTS.test(value)) effects.push({ kind: "write", path: "/tmp", span });
  return effects;
}

/** With `-S` php is a server in the box and reads no program from stdin; with `-l` it runs nothing of its files. */
function php(use: Use): readonly Found[] {
  const settings = use.options.flatMap(({ name, value }) =>
    name === "-d" && value !== null ? phpSetting(value, use) : [],
  );
  const served = use.options.flatMap(({ name, value }): readonly Found[] =>
    name === "-S" && value !== null ? [{ kind: "network", hosts: [], inside: true, span: value.span }] : [],
  );
  const checks = use.options.some(({ name }) => name === "-l");
  if (checks && use.operands.length > 0)
    return [...settings, ...use.operands.flatMap((file) => parsed(file, use))];
  const code: readonly Found[] = [{ kind: "code", from: "project", path: use.folder }];
  const listens = served.length > 0;
  const ran = listens && use.input !== "network" ? code : runner(["-r", "-B", "-R", "-E"])(use);
  return [...settings, ...served, ...ran];
}

/** less runs `+command` at its start. */
const plusCommands = (use: Use): readonly Found[] =>
  use.operands.filter(({ value }) => value.startsWith("+")).map((arg) => use.doubt("operand.unknown", arg));
/** Only names of pages: a path would be formatted with macros of its own. */
const pagePaths = (use: Use): readonly Found[] =>
  use.operands.filter(({ value }) => value.includes("/")).map((arg) => use.doubt("operand.unknown", arg));
/** The readers of this file, by the names that rows use. */
export const SHELL_READERS: Readonly<Record<string, Reader>> = {
  "shell switches": switchDoubts,
  "shell text, file or stdin": shellEffects,
  "shell of its own kind": smallShellDoubts,
  "another shell": (use) => [...shellEffects(use), ...(has(use, "-c") ? [escapes(use)] : [])],
  "program from a file or stdin": runner([]),
  perl: perl,
  ruby: ruby,
  php: php,
  less: plusCommands,
  man: pagePaths,
};
