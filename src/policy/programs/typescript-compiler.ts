import { fixedEffect, roleEffects } from "./argument-roles.ts";
import { type Arg, type Found, UNKNOWN, type Use, type Reader } from "./program-model.ts";

const words = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));

/** Boolean options; the next word may be their value. */
const SWITCHES =
  words(`all allowarbitraryextensions allowimportingtsextensions allowjs allowsyntheticdefaultimports allowumdglobalaccess
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

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["false", false],
  ["null", false],
]);

/** An unknown word may be an option. */
const isValue = ({ value }: Arg): boolean => !value.startsWith("-") && !value.startsWith(UNKNOWN);

const CHECKED = words("project p rootdir baseurl");
const WRITTEN = words(
  "outdir outfile out declarationdir tsbuildinfofile generatetrace generatecpuprofile pprofdir",
);

const VALUES =
  words(`charset customconditions ignoredeprecations jsx jsxfactory jsxfragmentfactory jsximportsource lib locale maxnodemodulejsdepth
  maproot module m moduledetection moduleresolution modulesuffixes newline reactnamespace sourceroot target t types
  checkers builders typeroots`);

/**
 * Output goes where the project's settings say, as with the project's tests; a build writes the output of other
 * projects, too.
 */
const BUILDS = ["build", "b"];
/** Options with which tsc writes its incremental state at most. */
const QUIET = ["noemit", "showconfig", "listfilesonly", "dry"];

interface TscArguments {
  readonly found: Found[];
  readonly on: Map<string, boolean>;
}

/** The compiler's own option syntax: any letter case, one dash or two, and booleans that take `true` or `false`. */
function typescript(use: Use): readonly Found[] {
  const result: TscArguments = { found: [fixedEffect("check", use.folder, use.program)], on: new Map() };
  let at = 0;
  while (at < use.args.length) at += argument(use.args[at] as Arg, use.args[at + 1], { use, result });
  const has = (name: string): boolean => result.on.get(name) === true;
  const loud = BUILDS.some(has) || QUIET.some((name) => result.on.get(name) === false);
  if (loud && !QUIET.some(has)) result.found.push({ kind: "write", path: use.folder });
  return result.found;
}

/** Number of words that were read. */
function argument(arg: Arg, next: Arg | undefined, at: At): 1 | 2 {
  const { use, result } = at;
  if (!arg.value.startsWith("-")) {
    result.found.push(...operand(arg, use));
    return 1;
  }
  const name = arg.value.replace(/^--?/, "").toLowerCase();
  if (arg.kind === "literal" && SWITCHES.has(name)) {
    const given = next?.kind === "literal" ? BOOLEANS.get(next.value.toLowerCase()) : undefined;
    result.on.set(name, given ?? true);
    return given === undefined ? 1 : 2;
  }
  if (arg.kind === "literal" && next !== undefined && isValue(next) && valued(name, next, at)) return 2;
  result.found.push(use.doubt("option.unknown", arg));
  return 1;
}

interface At {
  readonly use: Use;
  readonly result: TscArguments;
}

function valued(name: string, value: Arg, { use, result }: At): boolean {
  const role = CHECKED.has(name) ? "check" : WRITTEN.has(name) ? "write" : null;
  if (role !== null) result.found.push(...roleEffects(role, value, use, { forced: false, recursive: false }));
  return role !== null || VALUES.has(name);
}

/** `@file` contains more arguments. */
function operand(arg: Arg, use: Use): readonly Found[] {
  if (arg.value.startsWith("@")) return [use.doubt("option.loads-code", arg)];
  const certain = arg.kind === "literal" || (arg.kind === "glob" && /^\w/.test(arg.value));
  const doubts = certain ? [] : [use.doubt("word.dynamic", arg)];
  return [...doubts, ...roleEffects("check", arg, use, { forced: false, recursive: false })];
}

/** The readers of this file, by the names that rows use. */
export const TYPESCRIPT_READERS: Readonly<Record<string, Reader>> = {
  tsc: typescript,
};
