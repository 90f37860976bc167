import { fixedEffect, handsOn, roleEffects, writesGiven } from "./argument-roles.ts";
import type { Arg, Found, Reader, Use } from "./program-model.ts";
import { programEffects } from "./python-programs.ts";

const LIGHT = { forced: false, recursive: false };
/** Nothing is compiled: it tells of itself, or of files that it knows. */
const TELLS =
  /^(?:-v|-V|--version|-print-[\w-]+(?:=[\w.+-]*)?|--print-[\w-]+(?:=[\w.+-]*)?|-dump(?:version|machine|fullversion|specs)|--help(?:=[\w,^]+)?|--target-help|-Q|-###)$/;
/** What is known not to write, load or run anything. */
const HARMLESS =
  /^(?:-fsyntax-only|-c|-S|-E|-g[0-3]?|-ggdb[0-3]?|-O\w?|-w|-pedantic(?:-errors)?|-ansi|-pthread|-static|-shared|-pipe|-std=[\w+:]+|-W(?![lpa],)[\w+=-]*|-D\w+(?:=[\w.]*)?|-U\w+|-m(?:32|64|arch=[\w.-]+|tune=[\w.-]+)|-f(?:no-)?(?:PIC|pic|PIE|pie|exceptions|rtti|strict-aliasing|permissive|diagnostics-color(?:=\w+)?|color-diagnostics|openmp|stack-protector(?:-\w+)?|omit-frame-pointer|sanitize=[\w,]+|visibility=\w+|max-errors=\d+|concepts|coroutines|common|char8_t|unsigned-char|signed-char|short-enums|inline-functions|fast-math|analyzer|function-sections|data-sections)|-M{1,2}|-nostdlib|-nostdinc)$/;

/** A compiler of C and its kin. Its options are many, and some of them run or load programs: only a few are known. */
function compiles(use: Use): readonly Found[] {
  const { args, folder, program } = use;
  const all = (shape: RegExp): boolean =>
    args.every(({ kind, value }) => kind === "literal" && shape.test(value));
  if (args.length > 0 && all(TELLS)) return [];
  const checks = args.some(({ kind, value }) => kind === "literal" && value === "-fsyntax-only");
  const found: Found[] = checks
    ? [fixedEffect("check", folder, program)]
    : [{ kind: "write", path: folder }, fixedEffect("project", folder, program)];
  for (const [at, arg] of args.entries())
    found.push(...(args[at - 1]?.value === "-o" ? written(arg, use) : word(arg, use)));
  return found;
}

const written = (arg: Arg, use: Use): readonly Found[] => roleEffects("write", arg, use, LIGHT);

function word(arg: Arg, use: Use): readonly Found[] {
  const { kind, value } = arg;
  if (value === "-o" && kind === "literal") return [];
  if (value.startsWith("-o")) return written({ ...arg, value: value.slice(2) }, use);
  if (/^-[IL]./.test(value)) return roleEffects("check", { ...arg, value: value.slice(2) }, use, LIGHT);
  if (value.startsWith("-"))
    return kind === "literal" && HARMLESS.test(value) ? [] : [unknownOption(arg, use)];
  if (value.startsWith("@")) return [use.doubt("option.loads-code", arg)];
  return roleEffects("check", arg, use, LIGHT);
}

/** Which library, which language: that much is known of these. */
function unknownOption(arg: Arg, use: Use): Found {
  const doubt = use.doubt("option.unknown", arg);
  return doubt.kind === "unknown" &&
    arg.kind === "literal" &&
    /^-(?:l[\w.+-]+|x(?:c|c\+\+)?|M[MDP]{1,2}|rdynamic|s|ffreestanding|)$/.test(arg.value)
    ? { ...doubt, inside: true }
    : doubt;
}

/** A plain setting on the command line; of what is written otherwise, a shell may run some. */
const PLAIN = /^(?!SHELL=|MAKEFLAGS=|MAKEFILES=|\.)[A-Za-z_][\w-]*[:?+]?=[\w./:,-]*$/;

const isOdd = (arg: Arg): boolean =>
  arg.kind !== "literal" || (arg.value.includes("=") && !PLAIN.test(arg.value));

/** What stands in rules runs, and already does when they are only read. */
function targets(use: Use): readonly Found[] {
  return [
    fixedEffect("project", use.folder, use.program),
    ...use.operands.filter(isOdd).map((arg) => use.doubt("operand.unknown", arg)),
  ];
}

/** Options of maven that choose, print, or keep from the network, and those of them whose value is the next word. */
const MAVEN_FLAGS = new Set(
  `-q -X -e -o -B -U -N -V -am -amd -fae -ff -fn -nsu -ntp --quiet --debug --errors --offline --batch-mode --non-recursive
   --no-transfer-progress --fail-at-end --fail-fast --fail-never --also-make --also-make-dependents --show-version --no-snapshot-updates`.split(
    /\s+/,
  ),
);
const MAVEN_VALUES = new Set(["-pl", "-P", "-T", "--projects", "--threads", "--activate-profiles", "-rf"]);
/** Properties that choose among tests; others name programs, files and addresses. */
const MAVEN_PROPERTY =
  /^-D(?:test|it\.test|groups|excludedGroups|skipITs|skipTests|skipUTs|maven\.test\.skip|checkstyle\.skip|surefire\.failIfNoSpecifiedTests|failIfNoTests|style\.color)(?:=[\w.*#,$+!-]*)?$/;

function maven(use: Use): readonly Found[] {
  const found: Found[] = [];
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
    else if (arg.kind !== "literal" || !(MAVEN_FLAGS.has(arg.value) || MAVEN_PROPERTY.test(arg.value)))
      found.push(use.doubt("option.unknown", arg));
  }
  return [...found, fixedEffect(areTests(goals, /^test$/) ? "check" : "project", folder, program)];
}

const areTests = (targets: readonly Arg[], shape: RegExp): boolean =>
  targets.length > 0 && targets.every(({ kind, value }) => kind === "literal" && shape.test(value));
const isVersion = ({ kind, value }: Arg): boolean =>
  kind === "literal" && /^(?:-{1,2}version|-XshowSettings(?::\w+)?)$/.test(value);

/** Advisories come from the network. */
function advisories(use: Use): readonly Found[] {
  const local =
    use.operands.length > 0 && use.operands.every(({ value }) => /^(?:licenses|bans|sources)$/.test(value));
  return local ? [] : [{ kind: "network", hosts: [] }];
}

/** `name@version` is fetched. */
const fetched = (use: Use): readonly Found[] =>
  use.operands
    .filter(({ value }) => value.includes("@"))
    .map(({ span }) => ({ kind: "network", hosts: [], span }));

function formats({ options, folder }: Use): readonly Found[] {
  return options.some(({ name }) => name === "-n") ? [] : [{ kind: "write", path: folder }];
}

/** `test` alone is the project's tests; all else is its code. */
const testOrProject = ({ operands, folder, program }: Use): readonly Found[] => {
  const [first, ...more] = operands;
  const tests = more.length === 0 && first?.kind === "literal" && first.value === "test";
  return [fixedEffect(tests ? "check" : "project", folder, program)];
};
/** What it finds is tried out at the services that it is for. */
const verified: Reader = ({ options }) =>
  options.some(({ name }) => name === "-n" || name === "--no-verify") ? [] : [{ kind: "network", hosts: [] }];

/** It writes, unless the result goes nowhere or to the screen. */
function dartFormats(use: Use): readonly Found[] {
  const output = use.options.findLast(({ name }) => name === "-o" || name === "--output")?.value?.value;
  const shown = output === "none" || output === "show";
  return shown ? [] : writesGiven(use);
}

function testsOr({ operands, folder, program }: Use): readonly Found[] {
  const [first] = operands;
  const tests = first?.kind === "literal" && /^(?:test|spec)$/.test(first.value) && operands.length === 1;
  return [fixedEffect(tests ? "check" : "project", folder, program)];
}

/** It writes unless it only checks, which may be said to it or to the program that it hands on to. */
function cargoFormats(use: Use): readonly Found[] {
  const words = handsOn("cargo fmt --")(use);
  const checks =
    use.operands.some(({ kind, value }) => kind === "literal" && value === "--check") ||
    use.options.some(({ name }) => name === "--check");
  return checks ? words : [...words, ...writesGiven({ ...use, operands: [] })];
}

/** What rows ask of this file, by name. */
export const BUILD_READERS: Readonly<Record<string, Reader>> = {
  gcc: compiles,
  "make targets": targets,
  cmake: (use) => {
    const [first] = use.args;
    const project = fixedEffect("project", use.folder, use.program);
    return first?.value === "-E" ? [project, use.doubt("language.unknown", first)] : [project];
  },
  mvn: maven,
  java: (use) => {
    const [first, second] = use.args;
    if (first?.kind === "literal" && first.value.endsWith(".java")) return programEffects(first, use);
    if (first?.value === "-jar" && second !== undefined) return programEffects(second, use);
    if (first !== undefined && use.args.every(isVersion)) return [];
    return [fixedEffect("project", use.folder, use.program), fixedEffect("ask", use.folder, use.program)];
  },
  "go addresses": fetched,
  "go fmt": formats,
  "cargo fmt": cargoFormats,
  "cargo deny": advisories,
  "detect-secrets scan": verified,
  "zig build": testOrProject,
  "dart format": dartFormats,
  rake: testsOr,
};
