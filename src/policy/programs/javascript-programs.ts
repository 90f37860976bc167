/** Node, the package managers of JavaScript with the scripts that they run, and the compiler of TypeScript. */
import { PROGRAM_WORDS } from "../program-words.generated.ts";
import {
  codeElsewhere,
  fixedEffect,
  judgeAsProgram,
  inlineEffects,
  programEffects,
  roleEffects,
  literalArg,
  hasOption,
} from "./argument-roles.ts";
import {
  type Arg,
  type FoundEffect,
  type UsedOption,
  type UseReader,
  UNKNOWN,
  type Use,
} from "./program-model.ts";

const INLINE_OPTIONS: ReadonlySet<string> = new Set(["-e", "--eval", "-p", "--print", "-pe"]);

const inlines = (texts: readonly UsedOption[], use: Use): readonly FoundEffect[] =>
  texts.map(({ name, value }) =>
    inlineEffects((name === "-pe" ? use.operands[0] : value) ?? literalArg("", use)),
  );

/** `--run` starts a script of the package. */
const nodeScripts = ({ options, folder, program }: Use): readonly FoundEffect[] =>
  options
    .filter(({ name }) => name === "--run")
    .map(({ value }) =>
      fixedEffect(
        value?.kind === "literal" && CHECK_SCRIPTS.has(value.value) ? "check" : "project",
        folder,
        program,
      ),
    );

/** The row that judges arguments passed on to a package's tests. */
const TEST_WORDS = "npm test --";

const testsHandOn = judgeAsProgram(TEST_WORDS);

function node(use: Use): readonly FoundEffect[] {
  return [...reportDestinations(use), ...nodePrograms(use)];
}

function nodePrograms(use: Use): readonly FoundEffect[] {
  const { options, operands, folder, program } = use;
  const has = (...names: readonly string[]): boolean => options.some(({ name }) => names.includes(name));
  const texts = options.filter(({ name }) => INLINE_OPTIONS.has(name));
  const [file] = operands;
  // `--run` takes precedence over all others, wherever it stands.
  if (has("--run")) return [...nodeScripts(use), ...inlines(texts, use), ...testsHandOn(use)];
  if (has("--test"))
    return [
      fixedEffect("check", folder, program),
      ...inlines(texts, use),
      ...operands.flatMap((arg) => roleEffects("check", arg, use)),
    ];
  if (texts.length > 0) return inlines(texts, use);
  return has("--check", "-c")
    ? operands.flatMap((arg) => roleEffects("read", arg, use))
    : programEffects(file, use);
}

/** Targets of reports: a stream by name, or a file. */
function reportDestinations(use: Use): readonly FoundEffect[] {
  return use.options.flatMap(({ name, value }) =>
    name !== "--test-reporter-destination" ||
    value === null ||
    value.value === "stdout" ||
    value.value === "stderr"
      ? []
      : roleEffects("target", value, use),
  );
}

const scriptHandsOn = judgeAsProgram(TEST_WORDS, 1);

/** Some of npm's settings are registry tokens. */
function npmTokens(use: Use): readonly FoundEffect[] {
  return use.operands
    .filter(({ kind, value }) => kind !== "literal" || /auth|password|token|cert|key|\/\//i.test(value))
    .map((arg) => use.doubt("operand.unknown", arg));
}

/** Writes the file, and runs the project's scripts for it; commits and tags, unless told otherwise. */
function changesVersion(use: Use): readonly FoundEffect[] {
  if (use.operands.length === 0) return [];
  const tags = !hasOption(use, "--no-git-tag-version");
  return [
    { kind: "write", path: use.folder },
    ...(hasOption(use, "--ignore-scripts") ? [] : [fixedEffect("project", use.folder, use.program)]),
    ...(tags ? [{ kind: "repository", change: "local", what: use.program } as const] : []),
  ];
}

function changesPackage(use: Use): readonly FoundEffect[] {
  return [{ kind: "write", path: use.folder }];
}

const CHECK_PROGRAMS: ReadonlySet<string> = new Set(PROGRAM_WORDS.checks.programs);

/** A package that is not installed is fetched, unless an option before it forbids that. */
function runsPackage(use: Use): readonly FoundEffect[] {
  const [first, second] = use.args;
  if (first?.kind === "literal" && use.installed(first.value)) return runsInstalled(first, use.args, use);
  const stays = use.program === "npx" && first?.kind === "literal" && /^--no(?:-install)?$/.test(first.value);
  const named = second?.kind === "literal" && /^[\w@][\w@./-]*$/.test(second.value);
  if (stays && named && CHECK_PROGRAMS.has(second.value))
    return runsInstalled(second, use.args.slice(1), use);
  const effects = stays && named ? (["project"] as const) : (["install", "project"] as const);
  return [...effects.map((each) => fixedEffect(each, use.folder, use.program)), ...codeElsewhere(use)];
}

/** An installed program is code of the project. If the program is known, its arguments are judged too. */
function runsInstalled(name: Arg, words: readonly Arg[], use: Use): readonly FoundEffect[] {
  if (!CHECK_PROGRAMS.has(name.value))
    return [fixedEffect("project", use.folder, use.program), ...codeElsewhere(use)];
  return [fixedEffect("check", use.folder, use.program), ...use.command(words)];
}

const CHECK_SCRIPTS: ReadonlySet<string> = new Set(PROGRAM_WORDS.checks.scripts);

/**
 * What `run` and similar commands start: a check of the project, or another script. Without a name they only list
 * scripts.
 */
function runsScript(use: Use): readonly FoundEffect[] {
  const [script, ...passedOn] = use.operands;
  if (script === undefined) return [fixedEffect("settings", use.folder, use.program)];
  // Arguments for tests are judged; other checks may rewrite what they check, if an argument says so.
  const checks = passedOn.length === 0 ? CHECK_SCRIPTS.has(script.value) : script.value === "test";
  if (script.kind !== "literal" || !checks) return [fixedEffect("project", use.folder, use.program)];
  return [fixedEffect("check", use.folder, use.program), ...scriptHandsOn(use)];
}

/** `yarn build`, without `run`: its arguments may name code elsewhere. */
function scriptByName(use: Use): readonly FoundEffect[] {
  const found = runsScript(use);
  return checks(found) ? found : [...found, ...codeElsewhere(use)];
}

const checks = (found: readonly FoundEffect[]): boolean =>
  found.some((each) => each.kind === "code" && each.from === "check");

/** A script or, if there is none of that name, any program: `pnpm cat .env`. */
function scriptOrProgram(use: Use): readonly FoundEffect[] {
  const found = scriptByName(use);
  const runs = use.operands.length > 0 && !checks(found);
  return runs ? [...found, ...unlessUnknown(use.command(use.operands))] : found;
}

/** An unknown program counts as the project's own. */
const unlessUnknown = (found: readonly FoundEffect[]): readonly FoundEffect[] =>
  found.some((each) => each.kind === "unknown" && each.doubt === "command.unknown") ? [] : found;

/** A program with its arguments, or a line for a shell of its own: `yarn exec 'cat x | sort'`. */
function anyLine(use: Use): readonly FoundEffect[] {
  const words = use.args[0]?.value === "--" ? use.args.slice(1) : use.args;
  const [first] = words;
  const project = fixedEffect("project", use.folder, use.program);
  if (first === undefined) return [project];
  const line = /[\s;|&<>$`]/.test(first.value) ? use.shell(first) : use.command(words);
  return [project, ...unlessUnknown(line), ...codeElsewhere(use)];
}

/** `yarn node …` */
const nodeOfYarn = (use: Use): readonly FoundEffect[] => [
  fixedEffect("project", use.folder, use.program),
  ...(use.args[0] === undefined ? [] : use.command([literalArg("node", use.args[0]), ...use.args])),
];

/** A script or, if there is none of that name, a program of the packages. */
export function runsProgramOf(programs: readonly string[]): UseReader {
  const known = new Set(programs);
  return (use) => {
    const [name] = use.operands;
    const checks = name?.kind === "literal" && known.has(name.value);
    return checks ? [fixedEffect("check", use.folder, use.program), ...yarnAgain(use)] : runsScript(use);
  };
}

/** `yarn workspace name …`: the rest is a command of yarn again. */
function yarnInWorkspace(use: Use): readonly FoundEffect[] {
  const [workspace, ...rest] = use.operands;
  return workspace === undefined ? [] : use.command([literalArg("yarn", workspace), ...rest]);
}

function yarnAgain(use: Use): readonly FoundEffect[] {
  const [first] = use.operands;
  return first === undefined ? [] : use.command([literalArg("yarn", first), ...use.operands]);
}

/** `bun lint` is `bun run lint`; any other name may be a file. */
const scriptOrFile = (use: Use): readonly FoundEffect[] =>
  CHECK_SCRIPTS.has(use.args[0]?.value ?? "") ? runsScript(use) : programEffects(use.args[0], use);

/** Without `run` the program watches, but only in a terminal. */
function mustNotWatch(use: Use): readonly FoundEffect[] {
  const runs = [...use.options, ...use.globals].some(({ name }) => name === "--run");
  return runs ? [] : [fixedEffect("ask", use.folder, "a watch")];
}

const tscNames = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));

/** Boolean options; the next word may be their value. */
const TSC_SWITCHES =
  tscNames(`all allowarbitraryextensions allowimportingtsextensions allowjs allowsyntheticdefaultimports allowumdglobalaccess
  allowunreachablecode allowunusedlabels alwaysstrict assumechangesonlyaffectdirectdependencies checkjs composite
  declaration d declarationmap diagnostics disablereferencedprojectload disablesizelimit disablesolutionsearching
  downleveliteration emitdecoratormetadata emitdeclarationonly erasablesyntaxonly esmoduleinterop
  exactoptionalpropertytypes experimentaldecorators explainfiles extendeddiagnostics
  forceconsistentcasinginfilenames importhelpers incremental i inlinesourcemap inlinesources isolateddeclarations
  isolatedmodules keyofstringsonly libreplacement listemittedfiles listfiles listfilesonly noemit noemithelpers
  noemitonerror noerrortruncation nofallthroughcasesinswitch noimplicitany noimplicitoverride noimplicitreturns
  noimplicitthis nolib nopropertyaccessfromindexsignature noresolve nostricgenericchecks nouncheckedindexedaccess
  nouncheckedsideeffectimports nounusedlocals nounusedparameters preserveconstenums preservesymlinks
  preservewatchoutput pretty removecomments resolvejsonmodule resolvepackagejsonexports
  resolvepackagejsonimports rewriterelativeimportextensions showconfig singlethreaded skipdefaultlibcheck
  skiplibcheck sourcemap strict strictbindcallapply strictbuiltiniteratorreturn strictfunctiontypes
  strictnullchecks strictpropertyinitialization stripinternal suppressexcesspropertyerrors
  suppressimplicitanyindexerrors traceresolution usedefineforclassfields useunknownincatchvariables
  verbatimmodulesyntax verbose v force f dry build b stopbuildonerrors quiet noerrortruncation`);

const TSC_BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["false", false],
  ["null", false],
]);

/** An unknown word may be an option. */
const isTscValue = ({ value }: Arg): boolean => !value.startsWith("-") && !value.startsWith(UNKNOWN);

const TSC_CHECKED = tscNames("project p rootdir baseurl");
const TSC_WRITTEN = tscNames(
  "outdir outfile out declarationdir tsbuildinfofile generatetrace generatecpuprofile pprofdir",
);

const TSC_VALUES =
  tscNames(`charset customconditions ignoredeprecations jsx jsxfactory jsxfragmentfactory jsximportsource lib locale maxnodemodulejsdepth
  maproot module m moduledetection moduleresolution modulesuffixes newline reactnamespace sourceroot target t types
  checkers builders typeroots`);

/**
 * Output goes where the project's settings say, as with the project's tests; a build writes the output of other
 * projects, too.
 */
const TSC_BUILDS = ["build", "b"];
/** Options with which tsc writes its incremental state at most. */
const TSC_QUIET = ["noemit", "showconfig", "listfilesonly", "dry"];

interface TscArguments {
  readonly found: FoundEffect[];
  readonly on: Map<string, boolean>;
}

/** The compiler's own option syntax: any letter case, one dash or two, and booleans that take `true` or `false`. */
function typescript(use: Use): readonly FoundEffect[] {
  const result: TscArguments = { found: [fixedEffect("check", use.folder, use.program)], on: new Map() };
  let at = 0;
  while (at < use.args.length) at += tscArgument(use.args[at] as Arg, use.args[at + 1], { use, result });
  const has = (name: string): boolean => result.on.get(name) === true;
  const loud = TSC_BUILDS.some(has) || TSC_QUIET.some((name) => result.on.get(name) === false);
  if (loud && !TSC_QUIET.some(has)) result.found.push({ kind: "write", path: use.folder });
  return result.found;
}

/** Number of words that were read. */
function tscArgument(arg: Arg, next: Arg | undefined, at: TscAt): 1 | 2 {
  const { use, result } = at;
  if (!arg.value.startsWith("-")) {
    result.found.push(...tscOperand(arg, use));
    return 1;
  }
  const name = arg.value.replace(/^--?/, "").toLowerCase();
  if (arg.kind === "literal" && TSC_SWITCHES.has(name)) {
    const value = next?.kind === "literal" ? TSC_BOOLEANS.get(next.value.toLowerCase()) : undefined;
    result.on.set(name, value ?? true);
    return value === undefined ? 1 : 2;
  }
  if (arg.kind === "literal" && next !== undefined && isTscValue(next) && tscValued(name, next, at)) return 2;
  result.found.push(use.doubt("option.unknown", arg));
  return 1;
}

interface TscAt {
  readonly use: Use;
  readonly result: TscArguments;
}

function tscValued(name: string, value: Arg, { use, result }: TscAt): boolean {
  const role = TSC_CHECKED.has(name) ? "check" : TSC_WRITTEN.has(name) ? "write" : null;
  if (role !== null) result.found.push(...roleEffects(role, value, use));
  return role !== null || TSC_VALUES.has(name);
}

/** `@file` contains more arguments. */
function tscOperand(arg: Arg, use: Use): readonly FoundEffect[] {
  if (arg.value.startsWith("@")) return [use.doubt("option.loads-code", arg)];
  const certain = arg.kind === "literal" || (arg.kind === "glob" && /^\w/.test(arg.value));
  const doubts = certain ? [] : [use.doubt("word.dynamic", arg)];
  return [...doubts, ...roleEffects("check", arg, use)];
}

/** The readers of this file, by the names that rows use. */
export const JAVASCRIPT_READERS: Readonly<Record<string, UseReader>> = {
  "npm tokens": npmTokens,
  "npm pkg set": changesPackage,
  "npm version": changesVersion,
  "project script": runsScript,
  "script by its name": scriptByName,
  "script or program": scriptOrProgram,
  "any line": anyLine,
  "yarn node": nodeOfYarn,
  npx: runsPackage,
  node: node,
  "script file": (use) => programEffects(use.operands[0], use),
  "npm tests": (use) => [fixedEffect("check", use.folder, use.program), ...testsHandOn(use)],
  "must not watch": mustNotWatch,
  "script file first": scriptOrFile,
  "yarn workspace": yarnInWorkspace,
  "yarn workspaces foreach": yarnAgain,
  tsc: typescript,
};
