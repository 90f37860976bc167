/** Shells, their builtins, and wrappers that run another command. */
import { ENVIRONMENT, isInert, isPrivate, variableDoubt } from "../effects/environment.ts";
import { fileEffects, hasOption, inputEffects, isStdin } from "./argument-roles.ts";
import { type Arg, type FoundEffect, type UseReader, UNKNOWN, type Use } from "./program-model.ts";

/** A text after -c, a file, or stdin. A single `-` before them ends the options, as `--` does. */
function shellEffects(use: Use): readonly FoundEffect[] {
  const [first, second] = use.operands[0]?.value === "-" ? use.operands.slice(1) : use.operands;
  if (first?.kind === "literal" && TURNED_OFF.test(first.value)) return use.command(withoutPlus(first, use));
  if (hasOption(use, "-c")) return first === undefined ? inputEffects(use) : use.shell(first);
  if (first === undefined || hasOption(use, "-s") || isStdin(first)) return stdinCommands(use);
  if (hasOption(use, "-n") && second === undefined)
    return [{ kind: "read", path: use.place(first), span: first.span }];
  return [fileEffects(first, use)];
}

/** `+x` turns an option off. The words behind it are still options, and `+c` is the same as `-c`. */
const TURNED_OFF = /^\+[A-Za-z]+$/;

const withoutPlus = ({ span: [at] }: Arg, { program, args, span }: Use): readonly Arg[] => [
  { kind: "literal", value: program, span },
  ...args.map((arg) => (arg.span[0] === at ? { ...arg, value: `-${arg.value.slice(1)}` } : arg)),
];

/** Commands from stdin; judged where the text of stdin is known. */
function stdinCommands(use: Use): readonly FoundEffect[] {
  const { input } = use;
  if (typeof input === "string") return inputEffects(use);
  const text: Arg = { kind: "literal", value: input.text, span: input.span };
  const code: FoundEffect = { kind: "code", from: "input", path: null };
  const follows =
    input.rough !== true &&
    (use.program === "bash" || (use.program === "sh" && onlyBash(text, use).length === 0));
  return [follows ? { ...code, followed: true } : code, ...use.shell(text)];
}

/** `-o name`: one of the usual switches. */
const switchDoubts = (use: Use): readonly FoundEffect[] =>
  use.options.flatMap(({ name, value }) =>
    name !== "-o" || value === null || (value.kind === "literal" && isSwitch(value.value))
      ? []
      : [use.doubt("option.unknown", value)],
  );

function smallShellDoubts(use: Use): readonly FoundEffect[] {
  const [text] = use.operands;
  return hasOption(use, "-c") && text !== undefined ? onlyBash(text, use) : [];
}

/** Switches of a shell that change neither how it reads words nor what programs get. */
const SWITCH_NAMES: ReadonlySet<string> = new Set(
  `errexit errtrace functrace hashall monitor noclobber noexec noglob notify nounset onecmd pipefail verbose
  xtrace`.split(/\s+/),
);
const SWITCH_LETTERS = /^[-+][befhmnuvxCET]*o?$/;

/** Long names, as `-o` takes them. */
const isSwitch = (name: string): boolean => SWITCH_NAMES.has(name);

/** Letters, as in `-eu`; an `o` at the end takes a name. */
const areSwitches = (word: string): boolean => SWITCH_LETTERS.test(word);

/** Constructs of bash that small shells read as other commands. Searched for in the text, quoted or not. */
const ONLY_BASH =
  /\$'|&>|<<<|\|&|\(\(|<\(|>\(|\{[^\s{}]*(?:,|\.\.)|(?:^|[\s;&|({])(?:\[\[|function|select|time|coproc)(?=\s)/;

/** In front of a builtin, the variable assignment persists. */
const PERSISTENT_ASSIGNMENT = /(?:^|[\s;&|({])\w+=[^\s;&|]*\s+[^\s;&|]/;

/** A text for `sh`, which may be any of the small shells. */
const onlyBash = (text: Arg, use: Use): readonly FoundEffect[] =>
  ONLY_BASH.test(text.value) || PERSISTENT_ASSIGNMENT.test(text.value)
    ? [use.doubt("shell.unreadable", text, "only bash is known to read it this way")]
    : [];

/** Joins several words into the text that a shell makes of them. */
function joinWords([first, ...rest]: readonly [Arg, ...Arg[]]): Arg {
  const all = [first, ...rest];
  const vague = all.find(({ kind }) => kind === "dynamic") ?? all.find(({ kind }) => kind === "glob");
  const feed = all.find((arg) => arg.feed === "network")?.feed ?? all.find((arg) => arg.feed)?.feed;
  return {
    kind: vague?.kind ?? "literal",
    value: all.map(({ value }) => value).join(" "),
    span: [first.span[0], Math.max(...all.map(({ span }) => span[1]))],
    ...(feed === undefined ? {} : { feed }),
  };
}

/** Prints all variables, including secret ones. */
const printsEnvironment = ({ span }: Use): readonly FoundEffect[] => [
  { kind: "read", path: ENVIRONMENT, span },
];

/** `NAME=value` and `NAME` as arguments; `own` when the variable stays inside the shell. */
function assigned(use: Use, args: Use["args"], own: boolean): readonly FoundEffect[] {
  return args.flatMap((arg) => {
    const [, name, value] = /^(\w+)(?:\+?=([^]*))?$/.exec(arg.value) ?? [];
    if (
      name === undefined ||
      (own && isExpandedAgain(value)) ||
      (arg.kind !== "literal" && value === undefined)
    )
      return [use.doubt("shell.expansion", arg)];
    const known = arg.kind === "literal" ? (value ?? null) : null;
    if (isInert(name, known) || (own && isPrivate(name))) return [];
    const inside = name !== "IFS" && use.tame(name, known);
    return [{ ...use.doubt(variableDoubt(name), arg, name), ...(inside ? { inside } : {}) }];
  });
}

/** `-a x=(…)`: the shell expands the words in the value once more. */
const isExpandedAgain = (value = ""): boolean => value.startsWith("(") || value.startsWith(UNKNOWN);
const shellDoubt = (use: Use): FoundEffect => ({
  kind: "unknown",
  doubt: "shell.builtin",
  what: use.program,
  span: use.span,
});
/** `inside`: it has no effects beyond those that its other readers find. */
const plainShellDoubt = (use: Use, inside: boolean): FoundEffect => ({
  ...shellDoubt(use),
  ...(inside ? { inside } : {}),
});
const areLiteral = ({ args }: Use): boolean => args.every(({ kind }) => kind === "literal");

function evalEffects(use: Use): readonly FoundEffect[] {
  const [first, ...rest] = use.args.filter(({ value }) => value !== "--");
  return first === undefined ? [] : [shellDoubt(use), ...use.shell(joinWords([first, ...rest]))];
}

/**
 * A name with a slash means that very file: code of the project like any other, whatever it defines for later commands.
 * A bare name is searched for along PATH.
 */
function sourceEffects(use: Use): readonly FoundEffect[] {
  const file = use.args.find(({ value }) => value !== "--");
  if (file === undefined) return [shellDoubt(use)];
  if (isStdin(file)) return [shellDoubt(use), ...stdinCommands(use)];
  const named = file.kind === "literal" && file.value.includes("/");
  return named ? [fileEffects(file, use)] : [shellDoubt(use), fileEffects(file, use)];
}

function trapEffects(use: Use): readonly FoundEffect[] {
  const [action, ...signals] = use.args.filter(({ value }) => value !== "--");
  if (action === undefined || /^-[lp]+$/.test(action.value)) return [];
  const found = signals.length === 0 || action.value === "-" || action.value === "" ? [] : use.shell(action);
  return [plainShellDoubt(use, areLiteral(use)), ...found];
}

/** `name=text`: the text runs under that name later. */
function aliasEffects(use: Use): readonly FoundEffect[] {
  return use.args.flatMap((arg) => {
    const equals = arg.value.indexOf("=");
    if (equals === -1 && arg.kind === "literal") return [];
    return [
      plainShellDoubt(use, arg.kind === "literal" && equals !== -1),
      ...use.shell({ ...arg, value: arg.value.slice(equals + 1) }),
    ];
  });
}

/** `set` with the usual switches only, or with positional words. */
function setEffects(use: Use): readonly FoundEffect[] {
  if (use.args.length === 0) return printsEnvironment(use);
  let named = false;
  for (const { kind, value } of use.args) {
    if (kind === "literal" && !named && (value === "--" || value === "-")) return [];
    const known = named ? isSwitch(value) : areSwitches(value);
    if (kind !== "literal" || !known) return positional(use, value, { kind, named });
    named = !named && value.endsWith("o");
  }
  return [];
}

/** The words from the first one that is no switch. */
const positional = (
  use: Use,
  value: string,
  { kind, named }: { readonly kind: string; readonly named: boolean },
): readonly FoundEffect[] => (kind === "literal" && !named && /^\w/.test(value) ? [] : [shellDoubt(use)]);

/** Names of variables; a subscript would be evaluated. */
const variableNames = (use: Use): readonly FoundEffect[] => assigned(use, use.operands, true);

/** `command -v x` only prints; otherwise it runs the words after it. */
function commandEffects(use: Use): readonly FoundEffect[] {
  const at = use.args.findIndex(({ value }) => !value.startsWith("-") || value === "--");
  const options = at === -1 ? use.args : use.args.slice(0, at);
  const rest = at === -1 ? [] : use.args.slice(use.args[at]?.value === "--" ? at + 1 : at);
  const odd = options.filter(({ kind, value }) => kind !== "literal" || !/^-[pvV]+$/.test(value));
  const tells = options.some(({ value }) => /[vV]/.test(value));
  return [
    ...odd.map((arg) => use.doubt("option.unknown", arg)),
    ...(tells || rest.length === 0 ? [] : use.command(rest)),
  ];
}

/** Variable assignments, then a command; without a command, `env` prints all variables. */
function envEffects(use: Use): readonly FoundEffect[] {
  const at = use.operands.findIndex(({ value }) => !/^[^=]+=/.test(value));
  const variables = at === -1 ? use.operands : use.operands.slice(0, at);
  const command = at === -1 ? [] : use.operands.slice(at);
  const split = use.options.filter(({ name }) => name === "-S" || name === "--split-string");
  return [
    ...assigned(use, variables, false),
    ...split.flatMap(({ value }) =>
      value === null
        ? []
        : [use.doubt("option.unknown", value), ...use.shell(joinWords([value, ...command]))],
    ),
    ...(command.length > 0 ? use.command(command) : split.length > 0 ? [] : printsEnvironment(use)),
  ];
}

/** The words form one text for a shell. */
function watchedText(use: Use): readonly FoundEffect[] {
  const [first, ...rest] = use.operands;
  if (first === undefined) return [];
  const text = joinWords([first, ...rest]);
  return [...use.shell(text), ...onlyBash(text, use)];
}

/** A lock file, then a command, or a text after -c. */
function flockEffects(use: Use): readonly FoundEffect[] {
  const [lock, ...rest] = use.operands;
  if (lock === undefined) return [];
  const isText = rest[0]?.value === "-c" || rest[0]?.value === "--command";
  const text: Arg | undefined = isText ? rest[1] : undefined;
  const lockFile: FoundEffect = { kind: "write", path: use.place(lock), span: lock.span };
  return [lockFile, ...(text === undefined ? use.command(rest) : use.shell(text))];
}

/** Runs commands in a way that is not followed. */
export const escapes = (use: Use): FoundEffect => ({
  kind: "unknown",
  doubt: "command.escapes",
  what: use.program,
  span: use.span,
});

/** The readers of this file, by the names that rows use. */
export const SHELL_READERS: Readonly<Record<string, UseReader>> = {
  "shell switches": switchDoubts,
  "shell text, file or stdin": shellEffects,
  "shell of its own kind": smallShellDoubts,
  "another shell": (use) => [...shellEffects(use), ...(hasOption(use, "-c") ? [escapes(use)] : [])],
  "changes the shell": (use) => [shellDoubt(use)],
  umask: (use) => (use.operands.length === 0 ? [] : [plainShellDoubt(use, areLiteral(use))]),
  command: commandEffects,
  eval: evalEffects,
  source: sourceEffects,
  trap: trapEffects,
  alias: aliasEffects,
  set: setEffects,
  export: (use) => (use.operands.length === 0 ? printsEnvironment(use) : assigned(use, use.operands, false)),
  declare: (use) => (use.operands.length === 0 ? printsEnvironment(use) : assigned(use, use.operands, true)),
  unset: (use) => assigned(use, use.operands, true),
  "names of variables": variableNames,
  getopts: (use) => assigned(use, use.operands.slice(1, 2), true),
  let: (use) => use.args.map((arg) => use.doubt("shell.expansion", arg)),
  "changes the shell when told something": (use) => (use.args.length === 0 ? [] : [shellDoubt(use)]),
  "changes the shell, inside when plain": (use) => [plainShellDoubt(use, areLiteral(use))],
  env: envEffects,
  watch: watchedText,
  flock: flockEffects,
  script: (use) =>
    use.options.some(({ name }) => name === "-c" || name === "--command") ? [] : [escapes(use)],
};
