/** What one argument means: its effects by role, the hosts in it, and code in a file, a text or stdin. */
import type { Place } from "../effects/effect.ts";
import {
  type Arg,
  type Fixed,
  type FoundEffect,
  type UseReader,
  type Role,
  UNKNOWN,
  type Use,
} from "./program-model.ts";

export interface Force {
  readonly forced: boolean;
  readonly recursive: boolean;
}

/** Without options that force or recurse. */
export const LIGHT: Force = { forced: false, recursive: false };

/** Effects of an argument with this role. `command` takes all following arguments and is handled by the caller. */
export function roleEffects(
  role: Exclude<Role, "command">,
  arg: Arg,
  use: Use,
  weight = LIGHT,
): readonly FoundEffect[] {
  const { span } = arg;
  switch (role) {
    case "data":
    case "pattern":
      return NOTHING;
    case "read":
    case "in":
      return isStdio(arg) ? NOTHING : readEffects(arg, use);
    case "target":
      return [{ kind: "write", path: use.place(arg), span }];
    case "write":
      return isStdio(arg) ? NOTHING : [{ kind: "write", path: use.place(arg), span }];
    case "delete":
    case "tree":
      return [
        {
          kind: "delete",
          path: use.place(arg),
          forced: weight.forced,
          recursive: role === "tree" || weight.recursive,
          span,
        },
      ];
    case "permissions":
      return [{ kind: "permissions", path: use.place(arg), recursive: weight.recursive, span }];
    case "host":
      return [{ kind: "network", hosts: hostsOf(arg), span }];
    case "check":
      return checkEffects(arg, use);
    case "code":
      return [use.doubt("language.unknown", arg)];
    case "loads":
      return [use.doubt("option.loads-code", arg), ...(isStdin(arg) ? inputEffects(use) : [])];
    case "project":
      return isStdin(arg)
        ? inputEffects(use)
        : [{ kind: "code", from: "project", path: use.place(arg), span }];
    case "shell":
      return use.shell(arg);
  }
}

const NOTHING: readonly FoundEffect[] = [];

function readEffects(arg: Arg, use: Use): readonly FoundEffect[] {
  const read: FoundEffect = { kind: "read", path: use.place(arg), span: arg.span };
  return isAddress(arg) ? [read, ...fetched(arg)] : [read];
}

/** An argument that starts with a dash stands behind `--`; the program that runs may read it as an option again. */
function checkEffects(arg: Arg, use: Use): readonly FoundEffect[] {
  if (isStdio(arg)) return [];
  const { span } = arg;
  const path = use.place(arg);
  return [
    ...(arg.value.startsWith("-") ? [use.doubt("operand.unknown", arg)] : []),
    { kind: "read", path, span },
    { kind: "code", from: "check", path, span },
    ...fetched(arg),
  ];
}

/** An argument that is an address instead of a path. */
const fetched = (arg: Arg): readonly FoundEffect[] =>
  isAddress(arg) ? [{ kind: "network", hosts: hostsOf(arg), span: arg.span }] : NOTHING;

const isAddress = ({ value }: Arg): boolean => value.includes("://") && SCHEME.test(value);

/** A single `-` is stdin or stdout. */
const isStdio = ({ kind, value }: Arg): boolean => value === "-" && kind === "literal";

export function fixedEffect(fixed: Fixed, folder: Place, what: string): FoundEffect {
  switch (fixed) {
    case "network":
      return { kind: "network", hosts: [] };
    case "install":
    case "process":
    case "privilege":
    case "system":
      return { kind: fixed, what };
    case "settings":
    case "check":
    case "project":
      return { kind: "code", from: fixed, path: folder };
    case "input":
      return { kind: "code", from: "input", path: null };
    case "ask":
      return { kind: "unknown", doubt: what.startsWith("-") ? "option.unknown" : "command.unfollowed", what };
    default:
      return { kind: "repository", change: fixed, what };
  }
}

/**
 * The host of an address, of `host:port` or of `user@host:path`, in lower case and without a final dot. Empty where it is
 * unknown, and where two programs could read different hosts: a wrong host is worse than none.
 */
export function hostsOf(arg: Pick<Arg, "kind" | "value" | "loose">): readonly string[] {
  if (!isPlain(arg)) return [];
  const { value } = arg;
  const authority = authorityOf(value);
  if (authority === null) return [];
  const host = hostIn(authority.replace(USER, ""));
  return host === null ? [] : [host];
}

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;
/** With other numbers of slashes, some programs still find a host behind these. */
const SLOPPY = /^(?:https?|ftps?|wss?|ssh|sftp|scp|file|gopher|telnet|ldaps?):/i;
const ENDS = /[/?#]/;
/** Programs disagree whether the host follows the first or the last `@`, and on `;` and backslashes. */
const UNSURE = /[;\\\s]|@.*@/;
const USER = /^[^@]*@/;

const LOOPBACK = /^https?:\/\/\[::1\](?::\d+)?(?:\/[^*?[]*)?$/;

/** User, host and port; for `user@host:path` everything up to the first slash. */
function authorityOf(value: string): string | null {
  const scheme = SCHEME.exec(value)?.[0];
  if (scheme !== undefined) return cut(value.slice(scheme.length));
  if (SLOPPY.test(value) || value.includes("://")) return null;
  const authority = cut(value.startsWith("@") ? value.slice(1) : value);
  // `a:b@c` is the host c to one program, and the file b@c on a to another.
  return authority !== null && /^[^@]*:[^@]*@/.test(authority) ? null : authority;
}

function cut(rest: string): string | null {
  const end = rest.search(ENDS);
  const authority = end === -1 ? rest : rest.slice(0, end);
  return authority.length > MAX_LENGTH || UNSURE.test(authority) ? null : authority;
}

/** Longest user, host and port. */
const MAX_LENGTH = 500;

const BRACKETS = /^(\[[0-9a-f:.]+\])(?::|$)/i;
const BARE_SIX = /^[0-9a-f]*:[0-9a-f:.]*:[0-9a-f:.]*$/i;
const NAME = /^[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?$/i;
/** Most programs read a name that ends like a number as an address, in differing ways. */
const NUMBER = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/i;
const FOUR = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.|$)){4}$/;

function hostIn(text: string): string | null {
  const bracketed = BRACKETS.exec(text)?.[1];
  if (bracketed !== undefined) return bracketed.toLowerCase();
  if (BARE_SIX.test(text)) return `[${text.toLowerCase()}]`;
  const colon = text.indexOf(":");
  const name = (colon === -1 ? text : text.slice(0, colon)).replace(/\.$/, "");
  if (!NAME.test(name) || (NUMBER.test(name) && !FOUR.test(name))) return null;
  return name.toLowerCase();
}

/** The host is literal, whatever patterns or expansions come after it. */
function isPlain({ kind, value, loose }: Pick<Arg, "kind" | "value" | "loose">): boolean {
  if (kind === "literal") return true;
  // Where no file has such a name, which is every time, the shell leaves `[::1]` as it is.
  if (kind === "glob" && LOOPBACK.test(value)) return true;
  const slash = value.indexOf("/", SCHEME.exec(value)?.[0].length ?? 0);
  if (slash === -1) return false;
  if (kind === "glob") return value.search(/[*?[]/) > slash;
  return loose === undefined && value.indexOf(UNKNOWN) > slash;
}

/** An unknown word may be harmless: it gives a doubt, not the effect. */
export function outside(
  use: Use,
  isHarmless: (word: string) => boolean,
  fixed: Fixed,
  words = use.args,
): readonly FoundEffect[] {
  if (words.some(({ kind, value }) => kind === "literal" && !isHarmless(value)))
    return [fixedEffect(fixed, use.folder, use.program)];
  return words.filter(({ kind }) => kind !== "literal").map((arg) => use.doubt("word.dynamic", arg));
}

export const hasOption = ({ options }: Use, ...names: readonly string[]): boolean =>
  options.some(({ name }) => names.includes(name));

/** The argument with another text: a part of it, or what it implies. */
export const part = (arg: Arg, value: string): Arg => ({ ...arg, value });

export const valuesOf = ({ options }: Use, ...names: readonly string[]): readonly Arg[] =>
  options.flatMap(({ name, value }) => (value !== null && names.includes(name) ? [value] : []));

export const reading = (file: Arg, use: Use): FoundEffect => ({
  kind: "read",
  path: use.place(file),
  span: file.span,
});

export const writing = (file: Arg, use: Use): FoundEffect => ({
  kind: "write",
  path: use.place(file),
  span: file.span,
});

export const networkTo = (arg: Arg): FoundEffect => ({
  kind: "network",
  hosts: hostsOf(arg),
  span: arg.span,
});

/** For clients whose operands are hosts: without an operand the host comes from a file or a default. */
export const reachesAnyway = (use: Use): readonly FoundEffect[] =>
  use.operands.length > 0 ? [] : [{ kind: "network", hosts: [] }];

/** Stdin is read as commands, some of which run on this machine. */
export const commandsFromStdin = ({ input }: Use): readonly FoundEffect[] =>
  input === "nothing" ? [] : [{ kind: "code", from: "input", path: null }];

export const literalArg = (value: string, { span }: Pick<Arg, "span">): Arg => ({
  kind: "literal",
  value,
  span,
});

/** Judges the arguments from this position on as those of another program. */
export const judgeAsProgram =
  (to: string, from = 0) =>
  (use: Use): readonly FoundEffect[] => {
    const words = use.operands.slice(from);
    const [first] = words;
    if (first === undefined) return [];
    return use.command([literalArg(to, first), ...(first.value === "--" ? words.slice(1) : words)]);
  };

/** Writes the operands or, if there are none, everything below the folder. */
export const writesOperands = (use: Use): readonly FoundEffect[] =>
  use.operands.length === 0
    ? [{ kind: "write", path: use.folder }]
    : use.operands.map((arg): FoundEffect => ({ kind: "write", path: use.place(arg), span: arg.span }));

/** Options, of whatever program, that say where a build puts its result. */
const RESULT =
  /^(?:-o|-B|-{1,2}(?:out|out-?(?:[fF]ile|[dD]ir)|output|output-(?:dir|file|path)|target-dir|dist-dir|pack-destination|scratch-path|\w+_out))$/;

const nameOf = ({ value }: Arg): string => value.split("=", 1)[0] as string;

/** The values of options with these names, as the next word or after `=`. */
const resultsOf = ({ args }: Use, names: RegExp): readonly Arg[] =>
  args.flatMap((arg, at) => {
    const { value } = arg;
    const before = args[at - 1]?.value ?? "";
    if (!value.startsWith("-")) return names.test(before) ? [arg] : [];
    return value.includes("=") && names.test(nameOf(arg))
      ? [part(arg, value.slice(value.indexOf("=") + 1))]
      : [];
  });

/** Writes to the values of options with these names, which say where a result goes. */
export const writesTo = (use: Use, names: RegExp = RESULT): readonly FoundEffect[] =>
  resultsOf(use, names).map((file) => ({ kind: "write", path: use.place(file), span: file.span }));

/** Arguments with a path outside of the folder may name code there. */
export const codeElsewhere = (use: Use): readonly FoundEffect[] => {
  const results = new Set(resultsOf(use, RESULT).map(({ span }) => span));
  return use.args.flatMap((arg) => {
    if (results.has(arg.span)) return [];
    const path = arg.value.slice(arg.value.indexOf("=") + 1);
    if (!path.startsWith("/") && !path.includes("..")) return [];
    return [{ kind: "code", from: "project", path: use.place({ ...arg, value: path }), span: arg.span }];
  });
};

/** What `printf` makes of the text, as far as it matters for finding commands in it. */
const printfText = (text: string): string => text.replace(/\\n/g, "\n").replace(/\\t/g, "\t");

/** A program from stdin. */
export function inputEffects({ input }: Pick<Use, "input">): readonly FoundEffect[] {
  const from = input === "network" ? "fetched" : "input";
  const code = { kind: "code", from, path: null } as const;
  if (input === "project") return [{ ...code, followed: true }];
  if (typeof input === "string") return [code];
  return [input.rough === true ? { ...code, guess: printfText(input.text) } : { ...code, text: input.text }];
}

const STDIN: ReadonlySet<string> = new Set(["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"]);

/** Whether a file of code is stdin, so that stdin is the program. */
export const isStdin = ({ kind, value }: Arg): boolean => kind === "literal" && STDIN.has(value);

/** Whatever was opened under this number. */
const DESCRIPTOR = /^\/(?:dev|proc\/self)\/fd\/\d+$/;

/** A file of code, or one that a substitution makes. */
export function fileEffects(file: Arg, use: Use): FoundEffect {
  const [input] = isStdin(file) ? inputEffects(use) : [];
  if (input !== undefined) return { ...input, span: file.span };
  const given = file.feed !== undefined || (file.kind === "literal" && DESCRIPTOR.test(file.value));
  const from = file.feed === "network" ? "fetched" : given ? "input" : "project";
  return { kind: "code", from, path: from === "project" ? use.place(file) : null, span: file.span };
}

/** A program on the command line. */
export const inlineEffects = (text: Arg): FoundEffect => ({
  kind: "code",
  from: text.feed === "network" ? "fetched" : "inline",
  path: null,
  text: text.kind === "literal" ? text.value : "",
  span: text.span,
});

/** An interpreter with a file; without one it runs stdin. */
export const programEffects = (file: Arg | undefined, use: Use): readonly FoundEffect[] =>
  file === undefined || file.value === "-" ? inputEffects(use) : [fileEffects(file, use)];

/**
 * Many argument parsers take a word with a leading dash for an option, never for the value of the option before it. So
 * no such word is accepted as a value here, nor among the options before a sub-command: `npm --x -y test`. For `-C=x`,
 * some parsers take the value `x`, others `=x`. `-tc x` may be `-t` and `-c x` although `-t` takes a value (yargs,
 * minimist, commander). `@file` may stand for arguments in a file.
 */
export const ARGUMENT_READERS: Readonly<Record<string, UseReader>> = {
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

function ambiguities(use: Use, splitsLetters: boolean, readsArguments: boolean): readonly FoundEffect[] {
  const found: FoundEffect[] = [];
  for (const options of [use.globals, use.options])
    for (const { name, value, span } of options) {
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

function notAValue(value: Arg, use: Use): readonly FoundEffect[] {
  if (value.value.startsWith(UNKNOWN)) return [use.doubt("word.dynamic", value)];
  return /^-\D/.test(value.value) ? [use.doubt("option.unknown", value)] : [];
}

/** `-ws` is npm's own short form of `--workspaces`. */
const splits = (name: string, { value }: Arg): boolean =>
  /^[a-z]/i.test(value) && !(name === "-w" && value === "s");
