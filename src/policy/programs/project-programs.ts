import { BUILDS, COMPILERS, JVM } from "./compiler-programs.ts";
import { DOTNET_AND_SWIFT, PHP, RUBY } from "./dotnet-php-ruby.ts";
import { BUN_AND_DENO, JAVASCRIPT } from "./javascript-programs.ts";
import { NODES, NPM_TOOLS } from "./node-programs.ts";
import { OTHER_LANGUAGES, SCRIPTING, TEXT_LINTS } from "./other-languages.ts";
import { PACKAGE_MANAGERS, SYSTEM_PACKAGES } from "./package-managers.ts";
import { type Arg, type Found, type Model, UNKNOWN, type Use } from "./program-model.ts";
import { PYTHON_LINTS } from "./python-lints.ts";
import { MODULES, PYTHON_PACKAGES, PYTHON_TESTS, PYTHONS } from "./python-programs.ts";
import { GO_TOOLS, RUST } from "./rust-go.ts";

const PLAIN: Manners = { splitsLetters: false, readsArguments: false, local: false };
const JAVASCRIPT_MANNERS: Manners = { splitsLetters: true, readsArguments: false, local: false };
const OTHERS: Manners = { splitsLetters: false, readsArguments: true, local: false };
const LOCAL: Manners = { ...OTHERS, local: true };

/** The tools of projects, by ecosystem. */
export const PROJECT: readonly Readonly<Record<string, Model>>[] = [
  ...[NPM_TOOLS, BUN_AND_DENO, NODES].map((table) => guarded(table, JAVASCRIPT_MANNERS)),
  ...[PACKAGE_MANAGERS, JAVASCRIPT].map((table) => guarded(table, { ...JAVASCRIPT_MANNERS, local: true })),
  ...[SYSTEM_PACKAGES].map((table) => guarded(table, PLAIN)),
  ...[PYTHONS, MODULES, GO_TOOLS, COMPILERS, TEXT_LINTS].map((table) => guarded(table, OTHERS)),
  ...[
    PYTHON_TESTS,
    PYTHON_LINTS,
    PYTHON_PACKAGES,
    RUST,
    BUILDS,
    JVM,
    DOTNET_AND_SWIFT,
    RUBY,
    PHP,
    SCRIPTING,
    OTHER_LANGUAGES,
  ].map((table) => guarded(table, LOCAL)),
];

/** How a family of programs reads what others leave open. */
interface Manners {
  /** `-tc x` may be `-t` and `-c x`, though `-t` takes a value (yargs, minimist, commander). */
  readonly splitsLetters: boolean;
  /** To say its version, it may run code of the folder: settings, plug-ins, another release of itself. */
  readonly local: boolean;
  /** `@file` may stand for the arguments in a file. */
  readonly readsArguments: boolean;
}

/**
 * Many readers of arguments do not take a word that begins with a dash as the value of the option before it, but as an
 * option of its own. So no such word is a value here. And of `-C=x`, some take `x`, others `=x`.
 */
function guarded(table: Readonly<Record<string, Model>>, manners: Manners): Readonly<Record<string, Model>> {
  const done = new Map<Model, Model>();
  const guard = (model: Model): Model => {
    const known = done.get(model);
    if (known !== undefined) return known;
    const { also, reads, commands, otherwise } = model;
    const made: Model = {
      ...model,
      ...(manners.local ? { local: true } : {}),
      ...(reads === undefined
        ? { also: (use) => [...ambiguities(use, manners), ...(also?.(use) ?? [])] }
        : { reads: (use) => [...ambiguities({ ...use, operands: [] }, manners), ...reads(use)] }),
      ...(commands === undefined ? {} : { commands: mapped(commands) }),
      ...(otherwise === undefined ? {} : { otherwise: guard(otherwise) }),
    };
    done.set(model, made);
    return made;
  };
  const mapped = (models: Readonly<Record<string, Model>>): Readonly<Record<string, Model>> =>
    Object.fromEntries(Object.entries(models).map(([name, model]) => [name, guard(model)]));
  return mapped(table);
}

/** Those of the programs above, too: `npm --x -y test`. */
function ambiguities(use: Use, { splitsLetters, readsArguments }: Manners): readonly Found[] {
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
