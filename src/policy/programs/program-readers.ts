/** What a row can name for what it cannot express: readers of programs, and checks with parameters. */
import type { Doubt } from "../effects/effect.ts";
import { ARCHIVE_READERS } from "./archive-programs.ts";
import {
  ARGUMENT_READERS,
  codeElsewhere,
  commandsFromStdin,
  fixedEffect,
  judgeAsProgram,
  hostsOf,
  part,
  valuesOf,
  writesOperands,
  writesTo,
} from "./argument-roles.ts";
import { AWK_READERS } from "./awk-program.ts";
import { BUILD_READERS, PACKAGE_EFFECTS } from "./build-tools.ts";
import { COREUTILS_READERS } from "./coreutils.ts";
import { DATA_READERS } from "./data-programs.ts";
import { FIND_READERS } from "./find-program.ts";
import { GIT_SETTINGS_READERS } from "./git-settings.ts";
import { INTERPRETER_READERS, runner } from "./interpreters.ts";
import { JAVASCRIPT_READERS, runsProgramOf } from "./javascript-programs.ts";
import { NETWORK_READERS } from "./network-programs.ts";
import type { Arg, NamedReader, CheckParameter, FoundEffect, UseReader, Use } from "./program-model.ts";
import { EFFECT_WORDS, type EffectWord } from "./read-arguments.ts";
import { SEARCH_READERS } from "./search-programs.ts";
import { SED_READERS } from "./sed-program.ts";
import { escapes, SHELL_READERS } from "./shell-programs.ts";
import { SYSTEM_READERS } from "./system-programs.ts";
import { VERSION_CONTROL_READERS } from "./version-control.ts";

/**
 * Readers that rows can name in `reader` or `also`: for programs with a grammar of their own, and for what rows
 * cannot express.
 */
const READERS: ReadonlyMap<string, UseReader> = new Map(
  [
    ARCHIVE_READERS,
    ARGUMENT_READERS,
    AWK_READERS,
    BUILD_READERS,
    COREUTILS_READERS,
    DATA_READERS,
    FIND_READERS,
    GIT_SETTINGS_READERS,
    INTERPRETER_READERS,
    JAVASCRIPT_READERS,
    NETWORK_READERS,
    SEARCH_READERS,
    SED_READERS,
    SHELL_READERS,
    SYSTEM_READERS,
    VERSION_CONTROL_READERS,
  ].flatMap((readers) => Object.entries(readers)),
);

/** Finds the reader of a row. Throws for an unknown name: a mistake of the row. */
export function readerOf(check: NamedReader): UseReader {
  if (typeof check === "string") {
    const reader = READERS.get(check);
    if (reader === undefined) throw new Error(`no reader is called ${check}`);
    return reader;
  }
  const [name, parameters] = check;
  if (!Object.hasOwn(ROW_CHECKS, name)) throw new Error(`no check is called ${name}`);
  return ROW_CHECKS[name as keyof typeof ROW_CHECKS](parameters);
}

/** Checks with parameters: name in the row → reader made from the parameters. */
const ROW_CHECKS = {
  /** Harmless values by option; any other value is code to load. */
  "known values": (parameter) => knownValues(parameter, "option.loads-code"),
  /** Harmless values by option; any other value is not understood. */
  "understood values": (parameter) => knownValues(parameter, "option.unknown"),
  "known values until the next option": knownUntilNextOption,
  /** Patterns that values of options have to match to be harmless. */
  "values like": valuesLike,
  "not as first argument": notFirstArgument,
  "writes unless": writesUnless,
  "writes below with": writesBelowWith,
  "hands on to": (parameter) => judgeAsProgram(textOf(parameter), 0),
  "hands the rest on to": (parameter) => judgeAsProgram(textOf(parameter), 1),
  "always reads": (parameter) => () => [{ kind: "read", path: textOf(parameter) }],
  "always writes": (parameter) => () => [{ kind: "write", path: textOf(parameter) }],
  "every use": everyUse,
  "only with": harmlessOnlyWith,
  "runs only": runsOnly,
  "script, or one of": (parameter) => runsProgramOf(wordsOf(parameter)),
  "tests when every target is like": testsWhen,
  "network when a target is like": reachesWhen,
  "program in": (parameter) => runner(wordsOf(parameter)),
  "statements in": (parameter) => statements(...wordsOf(parameter)),
} as const satisfies Readonly<Record<string, (parameter: CheckParameter) => UseReader>>;

const tableOf = (parameter: CheckParameter): readonly (readonly [string, string])[] =>
  typeof parameter === "object" ? Object.entries(parameter) : [];

const wordsOf = (parameter: CheckParameter): readonly string[] =>
  typeof parameter === "string" ? parameter.split(" ") : isList(parameter) ? parameter : [];
const isList = (parameter: CheckParameter): parameter is readonly string[] => Array.isArray(parameter);

const textOf = (parameter: CheckParameter): string => (typeof parameter === "string" ? parameter : "");

function knownValues(parameter: CheckParameter, doubt: Doubt): UseReader {
  const known = new Map(
    tableOf(parameter).flatMap(([options, values]) => {
      const set: ReadonlySet<string> = new Set(values.split(" "));
      return options.split(" ").map((option) => [option, set] as const);
    }),
  );
  return (use) =>
    [...use.globals, ...use.options].flatMap(({ name, value, span }) => {
      const words = known.get(name);
      if (words === undefined || isAmong(words, value)) return [];
      return [{ kind: "unknown", doubt, what: value?.value ?? name, span }];
    });
}

const isAmong = (words: ReadonlySet<string>, value: Arg | null): boolean =>
  words.has(value?.value ?? "") && value?.kind !== "dynamic";

function valuesLike(parameter: CheckParameter): UseReader {
  const shapes = new Map(tableOf(parameter).map(([option, shape]) => [option, new RegExp(shape)]));
  return (use) =>
    [...use.globals, ...use.options].flatMap(({ name, value, span }) => {
      const shape = shapes.get(name);
      if (shape === undefined || value === null || (value.kind === "literal" && shape.test(value.value)))
        return [];
      return [{ kind: "unknown", doubt: "option.loads-code", what: value.value, span }];
    });
}

/**
 * Formatters that write their files, or everything below, unless one of these options is given. With `-` among the
 * options, a single `-` means stdin, and the result is printed.
 */
function writesUnless(parameter: CheckParameter): UseReader {
  const names = wordsOf(parameter);
  const printed = ({ operands }: Use): boolean =>
    operands.length === 1 &&
    operands.every(({ kind, value }) => kind === "literal" && value === "-" && names.includes(value));
  return (use) =>
    printed(use) || use.options.some(({ name }) => names.includes(name)) ? [] : writesOperands(use);
}

/** With one of these options the program writes below its folder. */
function writesBelowWith(parameter: CheckParameter): UseReader {
  const names = wordsOf(parameter);
  return (use) =>
    use.options.some(({ name }) => names.includes(name)) ? [{ kind: "write", path: use.folder }] : [];
}

/** Commands of a tool that otherwise takes files: with one of these first words, it makes or changes something. */
function notFirstArgument(parameter: CheckParameter): UseReader {
  const known: ReadonlySet<string> = new Set(wordsOf(parameter));
  return (use) => {
    const [first] = use.operands;
    return first !== undefined && known.has(first.value) ? [use.doubt("operand.unknown", first)] : [];
  };
}

/** For options that take all words up to the next option: each word must be one of these. */
function knownUntilNextOption(parameter: CheckParameter): UseReader {
  const known = new Map(tableOf(parameter).map(([name, values]) => [name, new Set(values.split(" "))]));
  return (use) =>
    use.options.flatMap(({ name, span }) => {
      const words = known.get(name);
      if (words === undefined) return [];
      const at = use.args.findIndex((arg) => arg.span === span);
      const rest = use.args.slice(at + 1);
      const end = rest.findIndex(({ value }) => value.startsWith("-"));
      return (end === -1 ? rest : rest.slice(0, end))
        .filter(({ kind, value }) => kind !== "literal" || !words.has(value))
        .map((arg) => use.doubt("option.loads-code", arg));
    });
}

/** Harmless with these arguments in any number and order, or without any; otherwise it has this effect. */
function harmlessOnlyWith(parameter: CheckParameter): UseReader {
  const table = new Map(tableOf(parameter));
  const harmless = new Set((table.get("harmless") ?? "").split(" "));
  const fixed = EFFECT_WORDS[table.get("otherwise") as EffectWord];
  return (use) => {
    if (use.args.some(({ kind, value }) => kind === "literal" && !harmless.has(value)))
      return [fixedEffect(fixed, use.folder, use.program)];
    return use.args.filter(({ kind }) => kind !== "literal").map((arg) => use.doubt("word.dynamic", arg));
  };
}

/** The arguments are a command of one of these programs; any other command is unknown. */
function runsOnly(parameter: CheckParameter): UseReader {
  const known = new Set(wordsOf(parameter));
  return (use) => {
    const [name] = use.operands;
    if (name === undefined) return [];
    return name.kind === "literal" && known.has(name.value)
      ? use.command(use.operands)
      : [use.doubt("operand.unknown", name)];
  };
}

/** The targets are tests where all match, otherwise other code of the project. */
function testsWhen(parameter: CheckParameter): UseReader {
  const shape = new RegExp(textOf(parameter));
  return ({ operands, folder, program }) => {
    const areTests =
      operands.length > 0 && operands.every(({ kind, value }) => kind === "literal" && shape.test(value));
    return [fixedEffect(areTests ? "check" : "project", folder, program)];
  };
}

/** Targets that send what was built to a registry or a server. */
function reachesWhen(parameter: CheckParameter): UseReader {
  const shape = new RegExp(textOf(parameter));
  return ({ operands }) =>
    operands
      .filter(({ value }) => shape.test(value))
      .map(({ span }) => ({ kind: "network", hosts: [], span }));
}

/**
 * Commands that a database client or server runs: `\! command` (psql, mysql), `system command` (mysql), `COPY …
 * PROGRAM 'command'`.
 */
const ESCAPES = /\\!\s*([^\n]+)|^\s*system\s+([^\n;]+)|\bprogram\s+'([^']+)'/i;

function statement(text: Arg, use: Use): readonly FoundEffect[] {
  const [, escape, system, program] = ESCAPES.exec(text.value) ?? [];
  const command = escape ?? system ?? program;
  if (command !== undefined) return use.shell(part(text, command));
  return text.value.includes("\\") ? [use.doubt("language.unknown", text)] : [];
}

/** SQL on the command line and from stdin. */
const statements =
  (...options: readonly string[]) =>
  (use: Use): readonly FoundEffect[] => [
    ...valuesOf(use, ...options).flatMap((text) => statement(text, use)),
    ...commandsFromStdin(use),
  ];

/** Effects of every use, whatever the words. */
function everyUse(parameter: CheckParameter): UseReader {
  const words = typeof parameter === "string" ? [parameter] : isList(parameter) ? parameter : [];
  return (use) => [
    ...words.flatMap((each) => effectsOf(each, use)),
    ...(words.includes("runs the project") ? codeElsewhere(use) : []),
    ...(words.includes("runs the project") || words.includes("asks") ? writesTo(use) : []),
  ];
}

const effectsOf = (effect: string, use: Use): readonly FoundEffect[] =>
  Object.hasOwn(WIDE_EFFECTS, effect)
    ? WIDE_EFFECTS[effect as keyof typeof WIDE_EFFECTS](use)
    : [fixedEffect(EFFECT_WORDS[effect as EffectWord], use.folder, use.program)];

/** Effects for `every use` that no single option has. */
export const WIDE_EFFECTS = {
  /** Network access, with the hosts of all addresses among the arguments. */
  "network by address": networkByAddress,
  /** Runs commands in a way that is not followed. */
  "runs anything": (use) => [escapes(use)],
  "writes to -d": (use) => writesTo(use, /^-d$/),
  /** Names with an address or a registry, instead of a path, are fetched. */
  "network for addresses": ({ args }) =>
    args
      .filter(({ value }) => /^(?:[a-z][a-z0-9+.-]*:\/\/|npm:|jsr:)/i.test(value))
      .map(({ span }) => ({ kind: "network", hosts: [], span })),
  /** `go run module@version` fetches the program; words after a package of the folder are arguments of that program. */
  "network for versions": ({ args }) => {
    const named = args.find(({ value }) => /^\.{1,2}(?:\/|$)|\.go$|@/.test(value));
    return named?.value.includes("@") === true ? [{ kind: "network", hosts: [], span: named.span }] : [];
  },
  ...PACKAGE_EFFECTS,
} as const satisfies Readonly<Record<string, UseReader>>;

/** First words with which such programs only print a script for the shell. */
const PRINTS = new Set(["completion", "completions", "docker-env", "podman-env"]);

function networkByAddress({ args, program }: Use): readonly FoundEffect[] {
  const [first] = args;
  if (first?.kind === "literal" && PRINTS.has(first.value)) return [{ kind: "process", what: program }];
  const addresses = args.filter(({ value }) => value.includes("://"));
  return [{ kind: "network", hosts: [...new Set(addresses.flatMap(hostsOf))] }];
}
