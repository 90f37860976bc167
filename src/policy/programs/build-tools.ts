/** Compilers, build tools and package managers. */
import type { Preset } from "../../core/network.ts";
import { PROGRAM_WORDS } from "../program-words.generated.ts";
import {
  codeElsewhere,
  fixedEffect,
  judgeAsProgram,
  programEffects,
  reading,
  roleEffects,
  literalArg,
  writesOperands,
  writesTo,
} from "./argument-roles.ts";
import type { Arg, FoundEffect, UseReader, Use } from "./program-model.ts";

/** Options with which nothing is compiled: the compiler only reports about itself or its files. */
const COMPILER_TELLS =
  /^(?:-v|-V|--version|-print-[\w-]+(?:=[\w.+-]*)?|--print-[\w-]+(?:=[\w.+-]*)?|-dump(?:version|machine|fullversion|specs)|--help(?:=[\w,^]+)?|--target-help|-Q|-###)$/;

/** Options that do not write, load or run anything. */
const COMPILER_HARMLESS =
  /^(?:-fsyntax-only|-c|-S|-E|-g[0-3]?|-ggdb[0-3]?|-O\w?|-w|-pedantic(?:-errors)?|-ansi|-pthread|-static|-shared|-pipe|-std=[\w+:]+|-W(?![lpa],)[\w+=-]*|-D\w+(?:=[\w.]*)?|-U\w+|-m(?:32|64|arch=[\w.-]+|tune=[\w.-]+)|-f(?:no-)?(?:PIC|pic|PIE|pie|exceptions|rtti|strict-aliasing|permissive|diagnostics-color(?:=\w+)?|color-diagnostics|openmp|stack-protector(?:-\w+)?|omit-frame-pointer|sanitize=[\w,]+|visibility=\w+|max-errors=\d+|concepts|coroutines|common|char8_t|unsigned-char|signed-char|short-enums|inline-functions|fast-math|analyzer|function-sections|data-sections)|-M{1,2}|-nostdlib|-nostdinc)$/;

/** C compilers and similar ones. Of their many options some run or load programs, so only a few are accepted. */
function compilerEffects(use: Use): readonly FoundEffect[] {
  const { args, folder, program } = use;
  const all = (shape: RegExp): boolean =>
    args.every(({ kind, value }) => kind === "literal" && shape.test(value));
  if (args.length > 0 && all(COMPILER_TELLS)) return [];
  const checks = args.some(({ kind, value }) => kind === "literal" && value === "-fsyntax-only");
  const found: FoundEffect[] = checks
    ? [fixedEffect("check", folder, program)]
    : [{ kind: "write", path: folder }, fixedEffect("project", folder, program)];
  for (const [at, arg] of args.entries())
    found.push(...(args[at - 1]?.value === "-o" ? outputEffects(arg, use) : compilerWord(arg, use)));
  return found;
}

const outputEffects = (arg: Arg, use: Use): readonly FoundEffect[] => roleEffects("write", arg, use);

function compilerWord(arg: Arg, use: Use): readonly FoundEffect[] {
  const { kind, value } = arg;
  if (value === "-o" && kind === "literal") return [];
  if (value.startsWith("-o")) return outputEffects({ ...arg, value: value.slice(2) }, use);
  if (/^-[IL]./.test(value)) return roleEffects("check", { ...arg, value: value.slice(2) }, use);
  if (value.startsWith("-"))
    return kind === "literal" && COMPILER_HARMLESS.test(value) ? [] : [unknownOption(arg, use)];
  if (value.startsWith("@")) return [use.doubt("option.loads-code", arg)];
  return roleEffects("check", arg, use);
}

/** The doubt about an option. For these ones (library, language), the box settles it. */
function unknownOption(arg: Arg, use: Use): FoundEffect {
  const doubt = use.doubt("option.unknown", arg);
  return doubt.kind === "unknown" &&
    arg.kind === "literal" &&
    /^-(?:l[\w.+-]+|x(?:c|c\+\+)?|M[MDP]{1,2}|rdynamic|s|ffreestanding|)$/.test(arg.value)
    ? { ...doubt, inside: true }
    : doubt;
}

/** A plain setting on the command line; in other forms a shell may run a part of it. */
const PLAIN_MAKE_SETTING = /^(?!SHELL=|MAKEFLAGS=|MAKEFILES=|\.)[A-Za-z_][\w-]*[:?+]?=[\w./:,-]*$/;

const isUnclear = (arg: Arg): boolean =>
  arg.kind !== "literal" || (arg.value.includes("=") && !PLAIN_MAKE_SETTING.test(arg.value));

const CHECK_TARGETS: ReadonlySet<string> = new Set(PROGRAM_WORDS.checks.targets);

/** Variables that say how much a run prints. */
const OUTPUT_AMOUNT = /^(?:V|VERBOSE|Q|CI)=\d$/;

/** Whether all targets are checks of the project by their names, and the only variables set say how much is printed. */
function areChecks({ operands }: Use): boolean {
  const named = operands.filter(({ value }) => !OUTPUT_AMOUNT.test(value));
  return named.length > 0 && named.every(({ kind, value }) => kind === "literal" && CHECK_TARGETS.has(value));
}

/** Rules run their commands, and some run already when the rules are read. */
function makeTargets(use: Use): readonly FoundEffect[] {
  return [
    fixedEffect(areChecks(use) ? "check" : "project", use.folder, use.program),
    ...use.operands.filter(isUnclear).map((arg) => use.doubt("operand.unknown", arg)),
  ];
}

/** Options of maven that select, print, or avoid the network, and those whose value is the next word. */
const MAVEN_FLAGS = new Set(PROGRAM_WORDS.maven.flags);
const MAVEN_VALUES = new Set(PROGRAM_WORDS.maven.values);
/** Properties that select tests; others may name programs, files and addresses. */
const MAVEN_PROPERTIES = new Set(PROGRAM_WORDS.maven.properties);
const MAVEN_PROPERTY = /^-D([\w.]+)(?:=[\w.*#,$+!-]*)?$/;

const isMavenProperty = (word: string): boolean => MAVEN_PROPERTIES.has(MAVEN_PROPERTY.exec(word)?.[1] ?? "");

function maven(use: Use): readonly FoundEffect[] {
  const found: FoundEffect[] = [];
  const goals: Arg[] = [];
  const { args, folder, program } = use;
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at] as Arg;
    if (!arg.value.startsWith("-")) goals.push(arg);
    else if (
      arg.kind === "literal" &&
      MAVEN_VALUES.has(arg.value) &&
      args[at + 1]?.value.startsWith("-") === false
    )
      at += 1;
    else if (arg.kind !== "literal" || !(MAVEN_FLAGS.has(arg.value) || isMavenProperty(arg.value)))
      found.push(use.doubt("option.unknown", arg));
  }
  for (const { span, value } of goals)
    if (MAVEN_PUBLISHES.test(value)) found.push({ kind: "network", hosts: [], span });
  return [...found, fixedEffect(areTestTargets(goals, /^test$/) ? "check" : "project", folder, program)];
}

/** Goals of maven that send what was built to a server. */
const MAVEN_PUBLISHES =
  /^(?:site-)?deploy$|^(?:release|jreleaser|nexus-staging):|:(?:deploy|publish|release)(?:-\w+)?$/;

const areTestTargets = (targets: readonly Arg[], shape: RegExp): boolean =>
  targets.length > 0 && targets.every(({ kind, value }) => kind === "literal" && shape.test(value));
const isJavaVersion = ({ kind, value }: Arg): boolean =>
  kind === "literal" && /^(?:-{1,2}version|-XshowSettings(?::\w+)?)$/.test(value);

/** Advisories are fetched from the network. */
function denyEffects(use: Use): readonly FoundEffect[] {
  const local =
    use.operands.length > 0 && use.operands.every(({ value }) => /^(?:licenses|bans|sources)$/.test(value));
  return local ? [] : [{ kind: "network", hosts: [] }];
}

/** `name@version` is fetched. */
const goAddresses = (use: Use): readonly FoundEffect[] =>
  use.operands
    .filter(({ value }) => value.includes("@"))
    .map(({ span }) => ({ kind: "network", hosts: [], span }));

function goFormat({ options, folder }: Use): readonly FoundEffect[] {
  return options.some(({ name }) => name === "-n") ? [] : [{ kind: "write", path: folder }];
}

/** `test` alone runs the project's tests; anything else runs other code of it. */
const testOrProject = ({ operands, folder, program }: Use): readonly FoundEffect[] => {
  const [first, ...more] = operands;
  const tests = more.length === 0 && first?.kind === "literal" && first.value === "test";
  return [fixedEffect(tests ? "check" : "project", folder, program)];
};

/** Found secrets are verified with the services that they belong to. */
const secretScan: UseReader = ({ options }) =>
  options.some(({ name }) => name === "-n" || name === "--no-verify") ? [] : [{ kind: "network", hosts: [] }];

/** Writes, unless the result is discarded or goes to the screen. */
function dartFormats(use: Use): readonly FoundEffect[] {
  const output = use.options.findLast(({ name }) => name === "-o" || name === "--output")?.value?.value;
  const shown = output === "none" || output === "show";
  return shown ? [] : writesOperands(use);
}

function rakeEffects({ operands, folder, program }: Use): readonly FoundEffect[] {
  const [first] = operands;
  const tests = first?.kind === "literal" && /^(?:test|spec)$/.test(first.value) && operands.length === 1;
  return [fixedEffect(tests ? "check" : "project", folder, program)];
}

/** Writes, unless it only checks; `--check` may be given to cargo or to the formatter behind it. */
function cargoFormats(use: Use): readonly FoundEffect[] {
  const words = judgeAsProgram("cargo fmt --")(use);
  const checks =
    use.operands.some(({ kind, value }) => kind === "literal" && value === "--check") ||
    use.options.some(({ name }) => name === "--check");
  return checks ? words : [...words, ...writesOperands(use.withOperands([]))];
}

/*
 * Package managers: their arguments either only choose among the packages of registries, or may lead anywhere.
 */

const { files, ...flags } = PROGRAM_WORDS.packages;
const PIP_FILES = new Set(files);
const PACKAGE_FLAGS: Readonly<Record<keyof typeof flags, ReadonlySet<string>>> = {
  npm: new Set(flags.npm),
  pip: new Set(flags.pip),
  cargo: new Set(flags.cargo),
  go: new Set(flags.go),
};

/** A package with its version: no address, no `owner/repository`, no alias of another, no path. */
const PACKAGE_NAMES: Readonly<Record<keyof typeof flags, RegExp>> = {
  npm: /^(?:@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*(?:@[\w.^~<>=*+-]+)?$/i,
  pip: /^[a-z0-9][\w.-]*(?:\[[\w.,-]+\])?(?:[<>=!~]=?=?[\w.*+!-]+(?:,[<>=!~]=?=?[\w.*+!-]+)*)?$/i,
  cargo: /^[a-z][\w-]*(?:@[\w.^~<>=*+-]+)?$/i,
  go: /^(?:all|\.\/\.\.\.|\.|[a-z0-9][\w.-]*\.[a-z]+(?:\/[\w.~-]+)*(?:\/\.\.\.)?(?:@[\w.+-]+)?)$/i,
};

/** npm takes a name with such an ending for a file, pip for an archive of a package. */
const PACKAGE_ARCHIVE = /\.(?:tgz|tar|tar\.\w+|zip|whl)$/i;

/** The workspace's own package, built by its own code. */
const OWN_PACKAGE = /^\.(?:\[[\w,.-]+\])?$/;

const installs =
  (from: keyof typeof PACKAGE_NAMES) =>
  (use: Use): readonly FoundEffect[] => {
    const found: FoundEffect[] = [];
    let plain = true;
    let file = false;
    for (const arg of use.args) {
      const before = file;
      file = from === "pip" && PIP_FILES.has(arg.value);
      if (arg.kind !== "literal") plain = false;
      else if (before) found.push(reading(arg, use));
      else if (from === "pip" && OWN_PACKAGE.test(arg.value))
        found.push(fixedEffect("project", use.folder, use.program));
      else if (!isPlainPackage(from, arg)) plain = false;
    }
    const install: FoundEffect = { kind: "install", what: use.program };
    return [plain && !file ? { ...install, from: from satisfies Preset } : install, ...found];
  };

const isPlainPackage = (from: keyof typeof PACKAGE_NAMES, { value }: Arg): boolean =>
  PACKAGE_FLAGS[from].has(value) ||
  value === "--only-binary=:all:" ||
  (PACKAGE_NAMES[from].test(value) && !PACKAGE_ARCHIVE.test(value));

/** Words for `every use` of a row. */
export const PACKAGE_EFFECTS = {
  "installs from npm": installs("npm"),
  "installs from pip": installs("pip"),
  "installs from cargo": installs("cargo"),
  "installs from go": installs("go"),
} as const;

/** With `-p` and `-f` the operands are files. */
const packageFiles = (use: Use): readonly FoundEffect[] =>
  use.options.some(({ name }) => name === "-p" || name === "-f" || name === "--file")
    ? use.operands.map((arg) => reading(arg, use))
    : [];

/** An operand of apt may be a package, a package of a release (`bash/stable`) or, in this form, a package file. */
const PACKAGE_FILE = /^(?:\.{0,2}|~[^/]*)\/|\.(?:u?deb|dsc|changes)$/;

const packageFileNames = (use: Use): readonly FoundEffect[] =>
  use.operands
    .filter(({ kind, value }) => kind === "dynamic" || PACKAGE_FILE.test(value))
    .map((arg) => reading(arg, use));

const PYTHON_PROGRAMS: ReadonlySet<string> = new Set(PROGRAM_WORDS.checks.python);
/** Options in front of the command that choose among what is installed, or forbid an installation. */
const UV_PLAIN =
  /^(?:--(?:no-sync|frozen|locked|offline|quiet|verbose|all-extras|all-groups|all-packages|dev|no-dev|no-progress|active|exact|inexact)|-[qv]+)$/;
/** With these, what is installed stays as it is. */
const UV_NO_UPDATE = /^--(?:no-sync|offline)$/;
const UV_VALUE = /^--(?:extra|no-extra|group|no-group|only-group|package)$/;

const again = (use: Use): FoundEffect => ({ kind: "install", what: use.program, from: "pip", again: true });

/** `uv run` brings the environment up to date first; a program that is already there needs nothing new for that. */
function runsWithUv(use: Use): readonly FoundEffect[] {
  let at = 0;
  for (; at < use.args.length; at += 1) {
    const { kind, value } = use.args[at] as Arg;
    if (kind !== "literal") break;
    if (UV_VALUE.test(value)) at += 1;
    else if (!UV_PLAIN.test(value)) break;
  }
  const words = use.args.slice(at);
  const [name] = words;
  const project = fixedEffect("project", use.folder, use.program);
  if (name?.kind !== "literal" || !use.installed(`.venv/bin/${name.value}`))
    return [
      fixedEffect("install", use.folder, use.program),
      project,
      ...codeElsewhere(use),
      ...writesTo(use),
    ];
  const updates = use.args.slice(0, at).some(({ value }) => UV_NO_UPDATE.test(value)) ? [] : [again(use)];
  return PYTHON_PROGRAMS.has(name.value)
    ? [...updates, ...use.command(words)]
    : [...updates, project, ...codeElsewhere(use), ...writesTo(use)];
}

/** Words with which nothing is installed. */
const ENVS_KEPT: Readonly<Record<string, RegExp>> = {
  tox: /^(?:l|list|-l|--listenvs|-a|--listenvs-all|c|config|--showconfig|--current-env)$/,
  nox: /^(?:-l|--list|--list-sessions|--no-venv|--no-install|-R)$/,
};

/** tox and nox make environments of their own in a folder of the project, and find there what they installed before. */
function runsInEnvs(use: Use): readonly FoundEffect[] {
  const rest = [
    fixedEffect("project", use.folder, use.program),
    ...codeElsewhere(use),
    ...writesTo(use, /^--(?:work-?dir|temp-dir|envdir)$/),
  ];
  const kept = ENVS_KEPT[use.program];
  const end = use.args.findIndex(({ value }) => value === "--");
  const own = end === -1 ? use.args : use.args.slice(0, end);
  if (own.some(({ kind, value }) => kind === "literal" && kept?.test(value) === true)) return rest;
  const install = use.installed(`.${use.program}`)
    ? again(use)
    : fixedEffect("install", use.folder, use.program);
  return [install, ...rest];
}

/** Programs that commands of `cmake -E` are like. */
const CMAKE_TOOLS: Readonly<Record<string, readonly string[]>> = {
  rm: ["rm"],
  remove: ["rm"],
  remove_directory: ["rm", "-rf"],
  env: ["env"],
  time: ["time"],
  copy: ["cp"],
  copy_directory: ["cp", "-r"],
  rename: ["mv"],
};

function cmakeTool([name, ...rest]: readonly Arg[], use: Use): readonly FoundEffect[] {
  const [folder, ...command] = rest;
  if (name?.value === "chdir" && folder !== undefined)
    return use.command(command, { folder: use.place(folder) });
  const tool =
    name?.kind === "literal" && Object.hasOwn(CMAKE_TOOLS, name.value) ? CMAKE_TOOLS[name.value] : undefined;
  if (name === undefined || tool === undefined) return [];
  return use.command([...tool.map((each) => literalArg(each, name)), ...rest]);
}

/** The readers of this file, by the names that rows use. */
export const BUILD_READERS: Readonly<Record<string, UseReader>> = {
  gcc: compilerEffects,
  "uv run": runsWithUv,
  "tox and nox": runsInEnvs,
  "make targets": makeTargets,
  cmake: (use) => {
    const [first] = use.args;
    const project = fixedEffect("project", use.folder, use.program);
    return first?.value === "-E"
      ? [project, use.doubt("language.unknown", first), ...cmakeTool(use.args.slice(1), use)]
      : [project, ...writesTo(use), ...writesTo(use, /^--(?:install-)?prefix$/)];
  },
  mvn: maven,
  java: (use) => {
    const [first, second] = use.args;
    if (first?.kind === "literal" && first.value.endsWith(".java")) return programEffects(first, use);
    if (first?.value === "-jar" && second !== undefined) return programEffects(second, use);
    if (first !== undefined && use.args.every(isJavaVersion)) return [];
    return [fixedEffect("project", use.folder, use.program), fixedEffect("ask", use.folder, use.program)];
  },
  "go addresses": goAddresses,
  "module file": (use) => [
    fixedEffect("settings", use.folder, use.program),
    { kind: "write", path: use.folder },
  ],
  "go fmt": goFormat,
  "cargo fmt": cargoFormats,
  "cargo deny": denyEffects,
  "detect-secrets scan": secretScan,
  "zig build": testOrProject,
  "dart format": dartFormats,
  rake: rakeEffects,
  "package files": packageFiles,
  "names of package files": packageFileNames,
};
