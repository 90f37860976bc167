/** Interpreters: what Python, Perl, Ruby and PHP run from an option, a file or stdin. */
import { PROGRAM_WORDS } from "../program-words.generated.ts";
import {
  fileEffects,
  fixedEffect,
  inlineEffects,
  inputEffects,
  programEffects,
  roleEffects,
  literalArg,
} from "./argument-roles.ts";
import type { Arg, FoundEffect, UseReader, Use } from "./program-model.ts";

const PYTHON_FLAGS = /^-[bBdEiIOPqRsSuvx]+$/;
/** Options of the interpreter that neither write nor load anything. */
const PYTHON_SETTINGS =
  /^(?:dev|utf8(?:=[01])?|importtime|faulthandler|tracemalloc(?:=\d+)?|no_debug_ranges|frozen_modules(?:=\w+)?|int_max_str_digits=\d+|showrefcount|perf|gil=[01])$/;

/** Python's options end at the program: a file, `-c text`, `-m module`, or stdin. */
function python(use: Use): readonly FoundEffect[] {
  const found: FoundEffect[] = [];
  const { args } = use;
  for (let at = 0; at < args.length;) {
    const arg = args[at] as Arg;
    // With `-i` Python reads stdin after the program ends.
    if (PYTHON_GOES_ON.test(arg.value)) found.push(...programEffects(undefined, use));
    if (PYTHON_ENDS.test(arg.value)) return [...found, ...pythonProgram(arg, args.slice(at + 1), use)];
    const words = pythonOptionWords(arg, args[at + 1]);
    if (words === 0) found.push(use.doubt("option.unknown", arg));
    at += Math.max(words, 1);
  }
  return [...found, ...programEffects(undefined, use)];
}

/** A file, `-`, `--`, `-c` or `-m`, the last two perhaps behind flags. */
const PYTHON_ENDS = /^(?:[^-]|-?$|--$|-[bBdEiIOPqRsSuvx]*[cm])/;
const PYTHON_GOES_ON = /^-[bBdEIOPqRsSuvx]*i/;
const PYTHON_LAST = /^-[bBdEiIOPqRsSuvx]*([cm])([\s\S]*)$/;
const PYTHON_SETTING = /^-[bBdEiIOPqRsSuvx]*([WX])([\s\S]*)$/;

/** Number of words that an option takes; 0 for one that is not known to be harmless. */
function pythonOptionWords({ kind, value }: Arg, next: Arg | undefined): 0 | 1 | 2 {
  if (kind !== "literal") return 0;
  if (PYTHON_FLAGS.test(value)) return 1;
  if (value === "--check-hash-based-pycs") return 2;
  const [, letter, attached] = PYTHON_SETTING.exec(value) ?? [];
  if (letter === undefined) return 0;
  const setting = attached === "" ? next?.value : attached;
  if (letter === "X" && (setting === undefined || !PYTHON_SETTINGS.test(setting))) return 0;
  return attached === "" ? 2 : 1;
}

function pythonProgram(first: Arg, rest: readonly Arg[], use: Use): readonly FoundEffect[] {
  if (first.value === "--") return programEffects(rest[0], use);
  const [, letter, attached = ""] = PYTHON_LAST.exec(first.value) ?? [];
  if (letter === undefined) return programEffects(first, use);
  const apart = attached === "";
  const value = (apart ? rest[0] : { ...first, value: attached }) ?? first;
  return letter === "c" ? [inlineEffects(value)] : pythonModule(value, apart ? rest.slice(1) : rest, use);
}

/** Even a standard module may import a file of the same name from the current folder. */
function pythonModule(module: Arg, rest: readonly Arg[], use: Use): readonly FoundEffect[] {
  const settings = fixedEffect("settings", use.folder, use.program);
  if (module.kind === "literal" && module.value === "timeit") return [settings, ...timed(rest)];
  const known = module.kind === "literal" ? PYTHON_MODULES.get(module.value) : undefined;
  if (known !== undefined) return [settings, ...use.command([literalArg(known, module), ...rest])];
  return [
    { kind: "code", from: "project", path: use.folder, span: module.span },
    { ...use.doubt("operand.unknown", module), ...(isOwnModule(module, rest) ? { inside: true } : {}) },
  ];
}

/** The words of timeit are lines of a program, and so is its setting-up. */
function timed(args: readonly Arg[]): readonly FoundEffect[] {
  const lines: Arg[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at] as Arg;
    const attached = /^(?:-s|--setup=)([^]+)$/.exec(arg.value)?.[1];
    if (attached !== undefined) lines.push({ ...arg, value: attached });
    else if (/^(?:-[nru]|--(?:number|repeat|unit))$/.test(arg.value)) at += 1;
    else if (!arg.value.startsWith("-")) lines.push(arg);
  }
  return lines.map(inlineEffects);
}

/** Standard and well-known modules that use the network or run other code. */
const REACHING_MODULES = new RegExp(
  String.raw`^(?:${PROGRAM_WORDS.python.reachingModules.join("|")})(?:\.|$)`,
);

/** An unknown module counts as the project's, if it gets the project's files only. */
const isOwnModule = ({ kind, value }: Arg, rest: readonly Arg[]): boolean =>
  kind === "literal" &&
  /^[a-z_]\w*(?:\.\w+)*$/i.test(value) &&
  !REACHING_MODULES.test(value) &&
  !rest.some((arg) => LEADS_OUT.test(arg.value));

/** An address, or a path outside of the project. */
const LEADS_OUT = /:\/\/|(?:^|[=:,])(?:~|\/(?!tmp\/))|(?:^|[=:,/])\.\.(?:\/|$)/;

/** Modules that are programs of their own. */
const MODULES_OF_PROGRAMS =
  `pytest pip mypy ruff black isort flake8 pylint pyflakes pycodestyle pydocstyle bandit coverage vulture radon tox nox
  pipx poetry pdm hatch uv pyright basedpyright autopep8 yapf codespell yamllint ansiblelint sqlfluff`.split(
    /\s+/,
  );
const MODULE_ROWS: readonly (readonly [module: string, entry: string])[] = [
  ["py.test", "pytest"],
  ["unittest", "python -m unittest"],
  ["json.tool", "python -m json.tool"],
  ["zipfile", "python -m zipfile"],
  ["tarfile", "python -m tarfile"],
  ["venv", "python -m venv"],
  ["virtualenv", "python -m virtualenv"],
  ["ensurepip", "python -m ensurepip"],
  ["http.server", "python -m http.server"],
  ["py_compile", "python -m py_compile"],
  ["compileall", "python -m compileall"],
  ["doctest", "python -m doctest"],
  ["site", "python -m site"],
  ["sysconfig", "python -m sysconfig"],
  ["platform", "python -m site"],
  ["this", "python -m site"],
  ["tokenize", "python -m tokenize"],
  ["ast", "python -m tokenize"],
  ["dis", "python -m tokenize"],
  ["tabnanny", "python -m tokenize"],
  ["calendar", "python -m calendar"],
  ["build", "python -m build"],
];

/** Module → row of the program. */
const PYTHON_MODULES: ReadonlyMap<string, string> = new Map([
  ...MODULES_OF_PROGRAMS.map((name) => [name, name] as const),
  ...MODULE_ROWS,
]);

/** `--cov-report=html:folder` names its target. */
function coverageReports(use: Use): readonly FoundEffect[] {
  return use.options.flatMap(({ name, value }) => {
    const cut = value?.value.indexOf(":") ?? -1;
    if (name !== "--cov-report" || value === null || cut === -1) return [];
    const tail = value.value.slice(cut + 1);
    return tail === "skip-covered" ? [] : roleEffects("write", { ...value, value: tail }, use);
  });
}

/** With an operand, the program writes the new version into the project. */
const changesVersion: UseReader = ({ operands, folder }) =>
  operands.length === 0 ? [] : [{ kind: "write", path: folder }];

/** A program as text of an option, as a file, or from stdin. */
export function runner(inline: readonly string[]): (use: Use) => readonly FoundEffect[] {
  return (use) => {
    const texts = use.options.filter(({ name }) => inline.includes(name));
    if (texts.length > 0) return texts.map(({ value }) => inlineEffects(value ?? wholeCommand(use)));
    const [file] = use.operands;
    return file === undefined || file.value === "-" ? inputEffects(use) : [fileEffects(file, use)];
  };
}

const wholeCommand = ({ program, span }: Use): Arg => ({ kind: "dynamic", value: program, span });

/** `-i` changes the given files. */
function perl(use: Use): readonly FoundEffect[] {
  const texts = use.options.filter(({ name }) => name === "-e" || name === "-E");
  const inPlace = use.options.some(({ name }) => name === "-i");
  if (texts.length === 0) return runner([])(use);
  const files = use.operands.map((arg): FoundEffect => ({
    kind: inPlace ? "write" : "read",
    path: use.place(arg),
    span: arg.span,
  }));
  return [...texts.map(({ value }) => inlineEffects(value ?? wholeCommand(use))), ...files];
}

/** `ruby -c` runs nothing of the file; `perl -c` does. */
const onlyParses = ({ options, operands }: Use): boolean =>
  operands.length > 0 &&
  options.some(({ name }) => name === "-c") &&
  !options.some(({ name }) => name === "-e" || name === "-i");

const parsedOnly = (file: Arg, use: Use): readonly FoundEffect[] => roleEffects("check", file, use);

/** With `-i` the output of the program replaces the files. */
function ruby(use: Use): readonly FoundEffect[] {
  if (onlyParses(use)) return use.operands.flatMap((file) => parsedOnly(file, use));
  const files = use.options.some(({ name }) => name === "-e") ? use.operands : use.operands.slice(1);
  const inPlace = use.options.some(({ name }) => name === "-i");
  return [
    ...runner(["-e"])(use),
    ...(inPlace ? files : []).map((arg): FoundEffect => ({
      kind: "write",
      path: use.place(arg),
      span: arg.span,
    })),
  ];
}

/** Settings that are only quantities. */
const PHP_HARMLESS_SETTINGS =
  /^(?:memory_limit|max_execution_time|display_errors|error_reporting|zend\.assertions|assert\.exception|date\.timezone)=[\w.-]*$/;

/** The modes of Xdebug. `debug` connects to a debugger; the last three write reports into the folder for temporary files. */
const XDEBUG_MODES = /^xdebug\.mode=(?:off|develop|coverage|debug|gcstats|profile|trace|,)*$/;
const XDEBUG_DEBUGS = /[=,]debug\b/;
const XDEBUG_REPORTS = /\b(?:gcstats|profile|trace)\b/;

/** A setting after `-d`: most of them load code, or name programs. */
function phpSetting(setting: Arg, use: Use): readonly FoundEffect[] {
  const found: FoundEffect = use.doubt("option.loads-code", setting);
  const { kind, value, span } = setting;
  if (kind !== "literal" || found.kind !== "unknown") return [found];
  const isMode = XDEBUG_MODES.test(value);
  const doubt: FoundEffect = PHP_HARMLESS_SETTINGS.test(value) || isMode ? { ...found, inside: true } : found;
  const effects: FoundEffect[] = [doubt];
  if (isMode && XDEBUG_DEBUGS.test(value)) effects.push({ kind: "network", hosts: [], span });
  if (isMode && XDEBUG_REPORTS.test(value)) effects.push({ kind: "write", path: "/tmp", span });
  return effects;
}

/** With `-S` php is a server in the box and reads no program from stdin; with `-l` it runs nothing of its files. */
function php(use: Use): readonly FoundEffect[] {
  const settings = use.options.flatMap(({ name, value }) =>
    name === "-d" && value !== null ? phpSetting(value, use) : [],
  );
  const served = use.options.flatMap(({ name, value }): readonly FoundEffect[] =>
    name === "-S" && value !== null ? [{ kind: "network", hosts: [], inside: true, span: value.span }] : [],
  );
  const checks = use.options.some(({ name }) => name === "-l");
  if (checks && use.operands.length > 0)
    return [...settings, ...use.operands.flatMap((file) => parsedOnly(file, use))];
  const code: readonly FoundEffect[] = [{ kind: "code", from: "project", path: use.folder }];
  const listens = served.length > 0;
  const ran = listens && use.input !== "network" ? code : runner(["-r", "-B", "-R", "-E"])(use);
  return [...settings, ...served, ...ran];
}

/** The readers of this file, by the names that rows use. */
export const INTERPRETER_READERS: Readonly<Record<string, UseReader>> = {
  python: python,
  "program from a file or stdin": runner([]),
  perl: perl,
  ruby: ruby,
  php: php,
  "python -m http.server": () => [{ kind: "network", hosts: [], inside: true }],
  "pytest reports": coverageReports,
  "writes a version": changesVersion,
  "program as an argument": ({ operands: [text] }) => (text === undefined ? [] : [inlineEffects(text)]),
};
