import { anyOf, type ExpressionTable } from "../../core/text/expression-table.ts";
import type { RunChanges } from "../../core/events.ts";
import { isInPlaceOfRunner, isOfTests, isRunnerFile, lastName } from "../../core/file-names.ts";
import { firstLines } from "../../core/wording.ts";
import { visibleLine } from "../../core/visible.ts";

/*
 * A check proves the work only if it is still the same check. This looks at what was done to it: tests that are gone,
 * emptied, fewer or skipped; a script or recipe that succeeds whatever happens; or a success that follows changes to
 * the tests alone. A request for exactly that is allowed. Changes that no count shows are not found, such as a
 * different expectation beside a change of the code.
 */

/** What was done to a check. */
export interface TamperedCheck {
  /** For people, a clause for each deed: "test_sum.py was deleted". */
  readonly deeds: readonly string[];
  /** The check is weaker, and nothing else was changed, so nothing else can have made it succeed. */
  readonly only: boolean;
}

/** The content of a file before the run and now; undefined when there is no such file or its content is unknown. */
export interface FileVersions {
  readonly before: (path: string) => Promise<string | undefined>;
  readonly now: (path: string) => Promise<string | undefined>;
}

export interface CheckFacts {
  readonly command: string;
  /** The request, in its own words. */
  readonly request: string;
  /** The check failed before. Only then does a success after changing tests alone mean anything. */
  readonly wasRed: boolean;
}

/** Most files that are compared. */
const MAX_COMPARED = 200;
/** Most characters of all files together. Files beyond that are not read, and count as changes of something else. */
export const MAX_CHARACTERS = 32 * 2 ** 20;

export async function tamperingIn(
  changes: Omit<RunChanges, "ignored">,
  texts: FileVersions,
  checked: CheckFacts,
): Promise<TamperedCheck | undefined> {
  const { added, modified, deleted } = changes;
  const all = [...modified, ...deleted, ...added];
  const isMeasured = all.some((path) => isOfTests(path) || isRecipe(path));
  if (!isMeasured || changes.incomplete === true || asksForTests(checked.request, all)) return undefined;
  const reading = new Reading(texts, added.filter(isOfTests).slice(0, MAX_COMPARED));
  const touched = [...modified, ...added.filter(isRunnerFile)];
  const plain = [...added, ...deleted].filter((path) => !isOfTests(path));
  const found: CheckChanges = { weak: [], slight: [], others: [...plain, ...touched.slice(MAX_COMPARED)] };
  if (!MOVES.test(checked.request))
    for (const path of deleted.filter(isOfTests).slice(0, MAX_COMPARED))
      if (!(await isMoved(path, added, reading))) found.weak.push(`${path} was deleted`);
  for (const [at, path] of touched.slice(0, MAX_COMPARED).entries())
    await compare({ path, isNew: at >= modified.length }, reading, checked.command, found);
  const alone = found.others.length === 0 && checked.wasRed;
  const deeds = alone ? [...found.weak, ...found.slight] : found.weak;
  if (deeds.length > 0) return { deeds, only: alone };
  const others = [...touched, ...deleted].map((path) => `${path} was changed, and nothing else`);
  return alone && others.length > 0 ? { deeds: others, only: false } : undefined;
}

interface BothTexts {
  readonly known: string | undefined;
  readonly now: string | undefined;
}

/** Reads files of a run one after the other, until the allowed amount is used up. */
class Reading {
  readonly #texts: FileVersions;
  readonly #news: readonly string[];
  #left = MAX_CHARACTERS;
  #cases: number | undefined;

  constructor(texts: FileVersions, news: readonly string[]) {
    this.#texts = texts;
    this.#news = news;
  }

  get isOver(): boolean {
    return this.#left <= 0;
  }

  before(path: string): Promise<string | undefined> {
    return this.#read(this.#texts.before, path);
  }

  now(path: string): Promise<string | undefined> {
    return this.#read(this.#texts.now, path);
  }

  /** "no room" when the first text used up all that was left. */
  async both(path: string): Promise<BothTexts | "no room"> {
    if (this.isOver) return "no room";
    const known = await this.before(path);
    return this.isOver ? "no room" : { known, now: await this.now(path) };
  }

  async #read(from: FileVersions["now"], path: string): Promise<string | undefined> {
    if (this.isOver) return undefined;
    const text = await from(path);
    this.#left -= text?.length ?? 0;
    return text;
  }

  /** Test cases in all new test files; counted once, whatever was deleted. */
  async newCases(): Promise<number> {
    if (this.#cases !== undefined) return this.#cases;
    let sum = 0;
    for (const path of this.#news) sum += countsIn(path, (await this.now(path)) ?? "").cases;
    return (this.#cases = sum);
  }
}

interface CheckChanges {
  readonly weak: string[];
  readonly slight: string[];
  /** Changed paths that do not belong to the check. */
  readonly others: string[];
}

async function compare(
  { path, isNew }: { readonly path: string; readonly isNew: boolean },
  reading: Reading,
  command: string,
  found: CheckChanges,
): Promise<void> {
  const texts = await reading.both(path);
  if (texts === "no room") return void found.others.push(path);
  const { known, now = "" } = texts;
  // If the earlier text of an existing file is unknown, so is what the file lost.
  if (known === undefined && !isNew && isOfTests(path) && !isInPlaceOfRunner(path)) return;
  const before = known ?? "";
  if (isRecipe(path)) {
    const { silenced, rest } = recipeChange({ path, command }, before, now);
    found.weak.push(...silenced.map((name) => `${name} ${ANYHOW}`));
    if (rest && silenced.length === 0) found.others.push(path);
    return;
  }
  if (!isOfTests(path)) return void found.others.push(path);
  if (isInPlaceOfRunner(path)) return void found.weak.push(`${path} takes the place of the test runner`);
  const less = weakened(path, before, now);
  if (less !== undefined) (less.slight === true ? found.slight : found.weak).push(`${path} ${less.how}`);
}

/** Whether the tests moved: a file of the same name elsewhere, or as many tests in new files. */
async function isMoved(path: string, added: readonly string[], reading: Reading): Promise<boolean> {
  if (added.some((other) => lastName(other) === lastName(path))) return true;
  if (!added.some(isOfTests)) return false;
  const was = await reading.before(path);
  if (was === undefined) return false;
  const { cases } = countsIn(path, was);
  return cases > 0 && (await reading.newCases()) >= cases;
}

/*
 * These patterns read arbitrary text of up to megabytes. To stay linear, they run over lines without surrounding white
 * space and with one space between words, and no repetition is followed by one that can match the same characters.
 */
const CASES = anyOf(
  [
    // Python, JavaScript, Ruby.
    /^\s*(?:async )?def test/,
    /\b(?:it|test|specify|scenario)(?:\.(?:only|each|concurrent)\b[^(\n]{0,200})?\s*\(/,
    /^\s*(?:it|test|specify|scenario) ["']/,
    // Go, Rust, Java, PHP, bats, C++.
    /^func (?:Test|Fuzz|Example)|#\[(?:\w+::)*test\b/,
    /@(?:Parameterized)?Test\b|\bfunction test|@test\b|\bTEST(?:_[FP])?\(/,
  ],
  { flags: "gm" },
);
const SKIPS = anyOf(
  [
    // Python.
    /@(?:unittest\.|pytest\.mark\.)?(?:skip|xfail|expectedFailure)\w*|\bpytest\.skip\(|\bskipTest\(/,
    // JavaScript.
    /\b(?:it|test|describe|suite|context)\.(?:skip|todo)\b|\bx(?:it|test|describe|context)\b/,
    /\bskip\s*:\s*(?:true|["'`])/,
    // Rust, Java, Go, PHP, bats.
    /#\[ignore\b|@(?:Disabled|Ignore)\b|\bt\.Skip\w*\(|\bSkipTest\b|\bmarkTestSkipped\(|^\s*skip\b/,
  ],
  { flags: "gm" },
);
/** Succeeds before anything is compared, or leaves tests out. */
const LEAVES = anyOf(
  [
    // Ends early, or whatever happened.
    /\b(?:sys\.exit|os\._exit|process\.exit|exit)\((?:0|true)?\)|^\s*exit 0\s*$/,
    /\|\|\s*(?:true|:|exit 0)\b|\bexitstatus\s*=\s*0/,
    // Tests that are not collected.
    /\bcollect_ignore|\bpytest_ignore_collect|\bpytest_collection_modifyitems|PathIgnorePatterns/,
    /--(?:ignore|deselect)\b|--pass-?with-?no-?tests\b|\bpassWithNoTests\b/,
  ],
  { flags: "gim" },
);
const ASSERTS = anyOf(
  [
    /\b(?:assert|expect|should|refute|must_\w|ensure|verify|check)\w*(?:\s?[!.]\w*|\s\w+)?\s?\(/,
    // Python's statement, properties of JavaScript.
    /^\s*assert\b(?!\s*\()|\.(?:should|must)\b/,
    // Go and Perl.
    /\bt\.(?:Error|Fatal)f?\(|\brequire\.[A-Z]\w*\(|^\s*(?:is|ok|like|cmp_ok|is_deeply)\s*\(?/,
  ],
  { flags: "gm" },
);
const TRIVIAL = anyOf(
  [
    /\bassert\s+(?:True|not False|1|(?<same>\w+)\s*==\s*\k<same>)\s*$/,
    /\bassert\w*(?:[.!]\w*)?\(\s*(?:true|True|1|!false|not False|(?<same>["'\w]+),\s*\k<same>)\s*\)/,
    /\bexpect\(\s*(?<same>["'\w]+)\s*\)\.\w+\(\s*\k<same>?\s*\)/,
  ],
  { flags: "gm" },
);

const HASH_COMMENTS = /\.(?:py|rb|sh|bash|bats|pl|t|exs?|toml|ini|cfg|ya?ml)$|(?:^|\/)[\w-]+$/;

function withoutComments(path: string, text: string): string {
  if (HASH_COMMENTS.test(path)) return text.replaceAll(/^[ \t]*#(?!!).*$/gm, "");
  return withoutBlocks(text).replaceAll(/^[ \t]*(?:\/\/|--).*$/gm, "");
}

/** A block comment without an end is not a comment; neither is anything after it. */
function withoutBlocks(text: string): string {
  const parts: string[] = [];
  let at = 0;
  for (;;) {
    const begins = text.indexOf("/*", at);
    const ends = begins === -1 ? -1 : text.indexOf("*/", begins + 2);
    if (ends === -1) return parts.join("") + text.slice(at);
    parts.push(text.slice(at, begins));
    at = ends + 2;
  }
}

/** Lines that are not blank, with one space between words. */
const linesOf = (text: string): readonly string[] =>
  text.split("\n").flatMap((line) => line.trim().replaceAll(/\s+/g, " ") || []);

const count = (text: string, { expression }: ExpressionTable): number => text.match(expression)?.length ?? 0;

interface Counts {
  readonly cases: number;
  readonly skips: number;
  readonly leaves: number;
  readonly asserts: number;
}

function countsIn(path: string, whole: string): Counts {
  const text = linesOf(withoutComments(path, whole)).join("\n");
  return {
    cases: count(text, CASES),
    skips: count(text, SKIPS),
    leaves: count(text, LEAVES),
    asserts: count(text, ASSERTS) - count(text, TRIVIAL),
  };
}

interface Weakened {
  readonly how: string;
  /** Tidying can have the same effect, so this counts only when nothing else was changed. */
  readonly slight?: true;
}

/** How a test file checks less than before; undefined when it does not. */
export function weakened(path: string, before: string, now: string): Weakened | undefined {
  if (before.trim() !== "" && withoutComments(path, now).trim() === "") return { how: "was emptied" };
  if (SHELL.test(path) && isIdle(path, now) && !isIdle(path, before)) return { how: ANYHOW };
  const [was, is] = [countsIn(path, before), countsIn(path, now)];
  if (is.skips > was.skips) return { how: "skips tests that it did not skip before" };
  if (is.leaves > was.leaves) return { how: ANYHOW };
  if (is.cases < was.cases) return { how: `lost ${was.cases - is.cases} of its ${was.cases} tests` };
  if (is.cases > was.cases || is.asserts >= was.asserts) return undefined;
  const how = `makes fewer comparisons: ${Math.max(0, is.asserts)} instead of ${was.asserts}`;
  return is.asserts <= 0 ? { how } : { how, slight: true };
}

const SHELL = /\.(?:sh|bash|bats)$|(?:^|\/)[\w-]+$/;
const isIdle = (path: string, text: string): boolean =>
  doesNothing(withoutComments(path, text).replaceAll(/^#!.*$|^[ \t]*set [-+].*$/gm, ""));

const ANYHOW = "was made to succeed whatever happens";

/** Project files that state, among other things, how tests are run. */
const isRecipe = (path: string): boolean => /^(?:package\.json|(?:GNU)?[Mm]akefile)$/.test(path);

/** The scripts or recipes in such a file that were silenced, and whether anything apart from the tests changed. */
function recipeChange(
  { path, command }: { readonly path: string; readonly command: string },
  before: string,
  now: string,
): { readonly silenced: readonly string[]; readonly rest: boolean } {
  const [was, is] =
    path === "package.json" ? [scriptsOf(before), scriptsOf(now)] : [rulesOf(before), rulesOf(now)];
  const ofCheck = (name: string): boolean => OF_TESTS.test(name) || command.includes(name);
  const silenced = [...was.steps].flatMap(([name, old]) => {
    const text = is.steps.get(name);
    return text !== undefined && ofCheck(name) && text !== old && isSilent(text) && !isSilent(old)
      ? [name]
      : [];
  });
  const same = (name: string): boolean => ofCheck(name) || was.steps.get(name) === is.steps.get(name);
  const names = new Set([...was.steps.keys(), ...is.steps.keys()]);
  return { silenced, rest: was.rest !== is.rest || ![...names].every(same) };
}

interface Recipe {
  /** Each script or recipe, by the name shown to people. */
  readonly steps: ReadonlyMap<string, string>;
  readonly rest: string;
}

function scriptsOf(text: string): Recipe {
  try {
    const { scripts = {}, ...rest } = JSON.parse(text) as {
      readonly scripts?: Readonly<Record<string, unknown>>;
    };
    const steps = Object.entries(scripts).map(
      ([name, script]) => [`npm run ${name}`, String(script)] as const,
    );
    return { steps: new Map(steps), rest: JSON.stringify(rest) };
  } catch {
    return { steps: new Map(), rest: text };
  }
}

function rulesOf(text: string): Recipe {
  const steps = new Map<string, string>();
  const rest = text.replaceAll(
    /^([\w-]+)[ \t]*:(?!=)[^\n]*\n((?:\t[^\n]*\n?)*)/gm,
    (rule: string, target: string, recipe: string) => {
      if (!/test|check/.test(target)) return rule;
      steps.set(`make ${target}`, recipe);
      return "";
    },
  );
  return { steps, rest };
}

const OF_TESTS = /test|check|verify|spec/i;

/** A line that does nothing. */
const IDLE =
  /^@?(?:true|:|exit(?: 0)?|echo\b[^&|;]*|node (?:--version|-v|-e (?:["']{2}|["']?(?:0|1|;|true|process\.exit\(0?\))["']?))|sleep \d+)$/;
/** Succeeds whatever happens. */
const LENIENT = /(?:\|\||;)\s*(?:(?:true|:|exit 0)\s*|echo\b[^&|;\n]*)$|^\t@?-|--pass-?with-?no-?tests\b/im;
const doesNothing = (text: string): boolean => linesOf(text).every((line) => IDLE.test(line));
const isSilent = (text: string): boolean => doesNothing(text) || LENIENT.test(text);

/** Asks for tests to be removed or moved. */
const MOVES =
  /\b(?:delete|remove|drop|move|rename|merge|split|reorgani[sz]e|restructure|clean|prune|strip|get rid of)\b/i;

const TESTS = String.raw`(?:\S*tests?\S*|specs?|expectations?|expected \w+|snapshots?|fixtures?|assertions?|mocks?|scripts?|checks?)`;
const EDITS = new RegExp(
  String.raw`\b(?:add|write|create|make|put|update|change|edit|adjust|correct|rewrite|delete|remove|drop|skip|disable|silence|empty|rename|move|improve|extend|split|merge|refactor|clean|convert|migrate|regenerate|record|port|repair|fix|mend|simplify|replace)\s+(?:(?:up|out|to|in) )?(?:(?:all |some )?(?:of )?(?:the |this |that |these |those |our |its |an? )?)(?:(?!that |which |who |so |if |when |because |where |and |to |until |by |for |with |in |of |against )\w+ ){0,5}${TESTS}(?=[\s.,;:!?]|$)`,
  "g",
);
const RED = /\b(?:fail\w*|broken|red|pass(?:es|ing)?|succeeds?|green|work)\b/;
/** Characters after "make the tests" that say what should happen to them. */
const WISH_LENGTH = 20;
const TESTS_ARE_WRONG = anyOf([
  /\b(?:tests?|specs?|expectations?|assertions?|snapshots?)\b(?:(?!fail|pass)(?:[^.!?:;,]|\.(?=\S))){0,60}\b(?:wrong|outdated|stale|flaky|incorrect|mistaken|obsolete|typo|no longer)\b/,
  /\b(?:leftover|dead|obsolete|superfluous|redundant|duplicate[ds]?|outdated|stale|unneeded|flaky) (?:\w+ )?(?:tests?|specs?|snapshots?|assertions?)\b/,
  /\b(?:wrong|typo|mistake|error|bug) in (?:the |a |our )?(?:\S*test\S*|specs?|snapshots?)/,
]);

/** The files that a request for a repair is about: not those that measure the work, unless it asks for that. */
export function filesToMend(paths: readonly string[], request: string): readonly string[] {
  const work = paths.filter((path) => !isOfTests(path) && !isRecipe(path) && !path.startsWith("."));
  return work.length === 0 || asksForTests(request, paths) ? paths : work;
}

/** The request is about the tests themselves, or names one of these files other than as failing. */
export function asksForTests(request: string, paths: readonly string[]): boolean {
  const lower = request.toLowerCase();
  const wanted = [...lower.matchAll(EDITS)].map(({ 0: text, index }) =>
    text.startsWith("make") ? lower.slice(index, index + text.length + WISH_LENGTH) : text,
  );
  if (wanted.some((text) => !RED.test(text))) return true;
  if (TESTS_ARE_WRONG.test(lower)) return true;
  const named = paths
    .filter((path) => isOfTests(path) || isRecipe(path))
    .map((path) => lastName(path).toLowerCase());
  return lower
    .split(/(?<=[.!?;:,])\s+|\n+/)
    .some((part) => !RED.test(part) && named.some((name) => part.includes(name)));
}

const MAX_NAMED = 3;

const deedsOf = ({ deeds }: TamperedCheck): string => firstLines(deeds, MAX_NAMED, visibleLine).join("; ");

/** For people: appended to the answer, or the reason of a failed run. */
export const tamperingReason = (command: string, tampering: TamperedCheck): string =>
  `\`${visibleLine(command)}\` succeeds, but is not the check that it was: ${deedsOf(tampering)}`;

/** For the model, told once. */
export const tamperingText = (command: string, tampering: TamperedCheck): string =>
  `\`${command}\` succeeds now, but it is not the check that it was: ${deedsOf(tampering)}. It is the measure, and nobody asked for another one. Put it back as it was, and mend what it tests.`;
