/*
 * What a request says by name, and whether that is so at the end. About files: a deleted file is gone, a created file
 * exists, a file to be changed is changed. About things in files: the project's new version, a function or value that
 * should exist, a name that should be replaced everywhere, a dependency that should be gone. Small models empty a file
 * that they should delete, write the new version into the changelog alone, or rename in one file of ten, and say that
 * it is done. Only plain English sentences that say exactly this are read: a wrong demand would cost a finished run.
 */

import { anyOf } from "../../core/text/expression-table.ts";
import { folderBefore, isOfTests } from "../../core/file-names.ts";
import type { Box } from "../../core/ports.ts";
import { textOfBytes } from "../../core/raw-data.ts";
import { visibleLine } from "../../core/visible.ts";
import { isCache } from "./run-changes.ts";

interface FilesWanted {
  /** Paths relative to the workspace. */
  readonly gone: readonly string[];
  /** For each entry, one of these names has to exist. */
  readonly there: readonly (readonly string[])[];
}

/** A longer text describes a task in which names may stand for anything. */
const MAX_CHARACTERS = 600;

const EXTENSIONS =
  "(?:[cm]?[jt]sx?|pyi?|rb|rs|go|java|kts?|c|cc|cpp|cxx|h|hpp|cs|php|pl|pm|lua|swift|scala|sh|bash|bats|sql|html?|css|scss|json5?|jsonl|ya?ml|toml|xml|svg|md|rst|adoc|txt|csv|tsv|lock|ini|cfg|conf|env|log|diff|patch|bak|orig|old|tmp|example|mk|cmake|gradle|vue|svelte|ipynb|tex|png|jpe?g|gif|pdf|zip|gz)";
const BARE = `(?:[\\w@+.-]+/)*[\\w@+.-]*\\.${EXTENSIONS}|(?:[\\w@+.-]+/)+[\\w@+.-]*`;
/** A name that can only be a file's: symbols may be renamed with the same words. */
const NAME = `(?:${BARE}|\`(?:${BARE})\`|"(?:${BARE})"|'(?:${BARE})')`;
/** Any name, when the sentence calls it a file. */
const ANY = `(?:[\\w@+./-]*\\w/?|\`[^\`\n]+\`|"[^"\n]+"|'[^'\n]+')`;
const ASKED = "^(?:(?:please|kindly|now|then|first|next),? )*(?:(?:can|could|would|will) you )?(?:please )?";
/** Without "script" and "module": those may be a script of package.json or a module of a language. */
const KIND = "(?:files?|folders?|director(?:y|ies))";
const ADJECTIVES = "(?:(?:new|old|empty|unused|small|simple|plain|text|markdown|json) )*";

const list = (name: string): string => `${name}(?:(?:, and |, | and )${name})*`;
const wholeRequest = (text: string): RegExp => new RegExp(`${ASKED}${text}$`, "i");
const requestStart = (text: string, after = " ,:;"): RegExp =>
  new RegExp(`${ASKED}${text}(?=$|[${after}])`, "i");

const DELETES = [
  wholeRequest(`(?:delete|remove|rm) (?:the |my )?${ADJECTIVES}${KIND} (${list(ANY)})`),
  wholeRequest(`(?:delete|remove|rm) (?:the |my )?${ADJECTIVES}(${list(NAME)})`),
];
const RENAMES = [
  wholeRequest(
    `(?:rename|move|mv) (?:the |my )?${KIND} (${ANY}) (?:to|into|as) (?:the )?(?:${KIND} )?(${ANY})`,
  ),
  wholeRequest(`(?:rename|move|mv) (?:the |my )?(${NAME}) (?:to|into|as) (?:the )?(?:${KIND} )?(${NAME})`),
];
const MAKES = "(?:create|make|write|add) (?:me )?(?:an? |the )?";
const CREATES = [
  requestStart(`${MAKES}${ADJECTIVES}(?:\\w+ )?file (?:called|named) (${ANY})`),
  requestStart(`${MAKES}${ADJECTIVES}(?:\\w+ )?(?:file|script|module) (?:(?:called|named) )?(${NAME})`),
  requestStart(`create (${NAME})`),
];

const match = (forms: readonly RegExp[], text: string): readonly string[] =>
  forms.flatMap((form) => form.exec(text)?.slice(1) ?? []).slice(0, 2);

const sentencesOf = (request: string): readonly string[] =>
  request.split(/(?<=[.!?;])\s+|\n+/).map((part) => part.trim().replace(/[.!?;]+$/, ""));

/** Empty when the request says more than such sentences can. */
export function filesWanted(request: string): FilesWanted {
  const gone: string[] = [];
  const there: string[][] = [];
  if (request.length > MAX_CHARACTERS) return { gone, there };
  for (const sentence of sentencesOf(request)) {
    const [deleted = ""] = match(DELETES, sentence);
    for (const name of deleted.split(/, and |, | and /)) gone.push(...workspacePath(name));
    const [from = "", to = ""] = match(RENAMES, sentence);
    for (const old of workspacePath(from)) {
      const names = workspacePath(to).flatMap((name) => namesOfMoved(old, name));
      if (names.length === 0) continue;
      gone.push(old);
      there.push(names);
    }
    const [made = ""] = match(CREATES, sentence);
    for (const name of workspacePath(made)) there.push([name]);
  }
  // One sentence may want gone what another wants created.
  return { gone: gone.filter((name) => !there.some((names) => names.includes(name))), there };
}

/** The path relative to the workspace; none for a path elsewhere or a pattern. */
function workspacePath(text: string): readonly string[] {
  const name = text.replaceAll(/^[`"']|[`"']$/g, "").replace(/^(?:\.\/)+/, "");
  const isElsewhere = /^[/~]|(?:^|\/)\.\.?(?:\/|$)|\/\//.test(name);
  return name === "" || isElsewhere || /[*?[\]{}$\\\s:]/.test(name) ? [] : [name];
}

const baseOf = (file: string): string => file.replace(/\/$/, "").split("/").at(-1) ?? file;

/** A file moved into a folder keeps its name; a bare name may mean one beside the old file. */
function namesOfMoved(old: string, to: string): readonly string[] {
  if (to.endsWith("/")) return [to + baseOf(old)];
  return [...new Set([to, `${to}/${baseOf(old)}`, folderBefore(old.replace(/\/$/, "")) + to])];
}

/** Files that are called by a word; which file it is has to be looked up. */
const CALLED: readonly (readonly [word: string, names: readonly string[]])[] = [
  ["readme", ["readme", "readme.*"]],
  [
    "changelog",
    ["changelog", "changelog.*", "history", "history.*", "changes", "changes.*", "news", "news.*"],
  ],
  ["licen[sc]e", ["license", "license.*", "licence", "licence.*", "copying", "copying.*"]],
  ["contributing", ["contributing", "contributing.*"]],
  ["makefile", ["makefile", "gnumakefile"]],
  ["dockerfile", ["dockerfile"]],
];
const PLACE = `(?:the |my |our |this )?(${NAME}|${CALLED.map(([word]) => word).join("|")})(?: file)?`;
/** Without sentences that add a link or the like: what follows "to" is then its target, not the file to change. */
const ADDS =
  "(?:add|append|insert|write)\\b(?:(?!\\b(?:links?|references?|pointers?|paths?|imports?|support|redirects?)\\b).)*?";
const PLACES = [
  wholeRequest(
    `(?:fix|correct|change|update|edit|improve|rewrite|reword|replace|add|append|insert|write|set|remove|delete|drop|bump|increase|raise|document|mention|describe|sort|refactor|simplify)\\b.*? (?:in|into|at the (?:end|top|bottom|beginning) of) ${PLACE}`,
  ),
  wholeRequest(`${ADDS} to ${PLACE}`),
  wholeRequest(`(?:remove|delete|drop)\\b.*? from ${PLACE}`),
  wholeRequest(
    `(?:update|edit|rewrite|improve|reformat|translate|shorten|extend|complete|refactor|simplify) ${PLACE}`,
  ),
];
const ON_CONDITION = /\b(?:if|unless|where|when|wherever|instead|like|as)\b/i;
/** The file only explains what is meant: its code is tested, called or documented elsewhere. */
const MEANT_BY = anyOf(
  [
    // "tests for", "examples of".
    /\b(?:tests?|specs?|benchmarks?|documentation|docs|examples?|mocks?|stubs?|wrappers?|bindings?|typings)\b.* (?:for|of)\b/,
    // "with the functions in".
    /\b(?:with|by|using|via|of|for|from|to|calls?|uses?|callers|than) (?:all |each |every )?(?:of )?(?:the|these|those|its)\b.* in\b/,
  ],
  { flags: "i" },
);
const REPAIRS = /^\W*(?:please )?(?:fix|correct)\b/i;

/** The files that a request wants changed. A failing test is left out, because its cause may be elsewhere. */
export function filesToChange(request: string): readonly string[] {
  if (request.length > MAX_CHARACTERS) return [];
  return sentencesOf(request)
    .filter((sentence) => !ON_CONDITION.test(sentence) && !MEANT_BY.test(sentence))
    .flatMap((sentence) => {
      const [named = ""] = match(PLACES, sentence);
      const known = CALLED.some(([word]) => new RegExp(`^${word}$`, "i").test(named));
      const files = known ? [named.toLowerCase()] : workspacePath(named);
      return files.filter((file) => !(isOfTests(file) && REPAIRS.test(sentence)));
    });
}

const TIME_MS = 10_000;
const KEEP = { head: 16_384, tail: 0 };
const NEVER = new AbortController().signal;

/** Wanted files that exist and were not changed. When a name stands for several files, any of them will do. */
export async function untouchedOf(request: string, open: () => Promise<Box>): Promise<readonly string[]> {
  const wanted = filesToChange(request);
  if (wanted.length === 0) return [];
  const box = await open();
  const { all, incomplete } = await box.changes();
  if (incomplete) return [];
  const changed = [...all].flatMap(({ path: file }) => (isCache(file) ? [] : [`/${file}`]));
  const left: string[] = [];
  for (const name of wanted) {
    const names = CALLED.find(([word]) => new RegExp(`^${word}$`).test(name))?.[1];
    const there = await filesCalled(names ?? [baseOf(name)], box);
    const meant = names === undefined ? there.filter((file) => `/${file}`.endsWith(`/${name}`)) : there;
    const [first] = meant;
    if (first === undefined || meant.some((file) => changed.some((each) => each.endsWith(`/${file}`))))
      continue;
    left.push(`${visibleLine(first)} was not changed`);
  }
  return left;
}

/** Files with these names, those nearest to the workspace's root first. */
async function filesCalled(names: readonly string[], box: Box): Promise<readonly string[]> {
  const patterns = names.flatMap((name, at) => [...(at === 0 ? [] : ["-o"]), "-iname", name]);
  const pruned = ["(", "-name", ".git", "-o", "-name", "node_modules", ")", "-prune", "-o"];
  const words = ["find", ".", ...pruned, "-type", "f", "(", ...patterns, ")", "-print0"];
  const { stdout } = await box.exec({ words, timeoutMs: TIME_MS, keep: KEEP }, NEVER);
  const files = textOfBytes(stdout.head).split("\0").slice(0, -1);
  return files
    .map((file) => file.replace(/^\.\//, ""))
    .toSorted((a, b) => a.split("/").length - b.split("/").length);
}

/** What is not as the request says, for the model and for people; undefined when everything is. */
export async function notAsNamed(request: string, open: () => Promise<Box>): Promise<string | undefined> {
  const { gone, there } = filesWanted(request);
  if (gone.length + there.length === 0) return undefined;
  const box = await open();
  const isThere = async (name: string): Promise<boolean> =>
    (await box.stat(`${box.workspace}/${name.replace(/\/$/, "")}`)).kind === "ok";
  const wrong: string[] = [];
  for (const name of gone) if (await isThere(name)) wrong.push(`${visibleLine(name)} is still there`);
  for (const names of there) {
    const found = await Promise.all(names.map(isThere));
    if (!found.includes(true) && !(await isMadeElsewhere(names, box)))
      wrong.push(`${visibleLine(names[0] ?? "")} is not there`);
  }
  return wrong.length === 0 ? undefined : wrong.join(", ");
}

/** Whether the file was made in another folder, which the request may name, or with its language's extension. */
async function isMadeElsewhere(names: readonly string[], box: Box): Promise<boolean> {
  const { all } = await box.changes();
  for (const { path: file, what } of all) {
    const isThis = (name: string): boolean =>
      `/${file}`.endsWith(`/${name}`) || baseOf(file).startsWith(`${name}.`);
    if (what !== "deleted" && names.some(isThis)) return true;
  }
  return false;
}

export interface ThingsWanted {
  readonly version: string | undefined;
  /** Names that a changed file has to contain. */
  readonly there: readonly string[];
  /** Names that no code may contain any more. */
  readonly nowhere: readonly string[];
  /** Packages that no manifest of the project may name any more. */
  readonly undepended: readonly string[];
}

const asks = (text: string): RegExp => requestStart(text, " ,:;.(");

const OF_THIS = "(?:package|project|crate|library|app)";
const VERSION = asks(
  `(?:bump|set|change|update|raise|increase|upgrade) (?:the |this |our )?(?:${OF_THIS}(?:'s)? )?version(?: number)?(?: of (?:the|this) ${OF_THIS})?(?: from v?\\d[\\w.+-]*)? to v?(\\d+(?:\\.\\d+)+(?:[-+][\\w.+-]*\\w)?)`,
);
const SYMBOL =
  "(?:functions?|methods?|class|structs?|interfaces?|types?|enums?|traits?|constants?|variables?|fields?|propert(?:y|ies)|options?|flags?|parameters?|arguments?|settings?|(?:sub)?commands?|helpers?|macros?)";
const WORD = "(`[\\w$.:-]+(?:\\(\\))?`|[\\w$-]+(?:\\(\\))?)";
const ADDED = asks(
  `(?:add|create|implement|write|define|introduce) (?:me )?(?:an? |the )?(?:(?:new|optional|public|static|boolean|helper|simple|small|pure) )*${SYMBOL} (called |named )?${WORD}`,
);
const RENAMED = asks(
  `rename (?:the |all |every )?(?:${SYMBOL} |symbol |identifier )${WORD} (?:to|into|as) ${WORD}`,
);
const UNDEPENDED = asks(
  "(?:remove|drop|uninstall|delete) (?:the |our )?(?:npm |pip |python |cargo |go )?(?:dependency|package)(?: on)? [`\"']?((?:@[\\w.-]+/)?[\\w./-]*\\w)[`\"']?",
);
/** A value that stands out from the words around it: quoted, a number, or a name with digits. */
const VALUE =
  "(?:`([^`]{1,60})`|\"([^\"]{1,60})\"|'([^']{1,60})'|#?(\\d\\d[\\d.]*|\\d\\.[\\d.]+)|([A-Za-z][\\w.+]*-[\\w.+-]*\\d[\\w.+-]*))";
const SET = new RegExp(
  `${ASKED}(?:set|change|replace|switch|update|raise|increase|lower|decrease|reduce)\\b.*? (?:to|with) ${VALUE}(?:\\w*(?: (?:seconds?|minutes?|hours?|days?|ms|bytes|px|percent))?)?(?: (?:in|for|everywhere|throughout)\\b.*)?[.!;]?$`,
  "i",
);
/** A word whose form makes it a name; any other may just be the next word of the sentence. */
const CODE_NAME = /^(?:`.*`|--?\w.*|.*\(\)|[A-Za-z][a-z0-9]*[A-Z_$]\S*|[A-Z]\w*\d\w*)$/;
const EVERYWHERE =
  /\b(?:everywhere|throughout|in (?:all|every) (?:files?|places?|code)|(?:all|every) (?:of )?(?:its |the )?(?:uses?|usages?|callers?|references?|occurrences?))\b/i;
const CONDITION = /\b(?:if|unless|where|when|wherever|instead)\b/i;

const stripPunctuation = (word: string): string =>
  word
    .replaceAll("`", "")
    .replace(/\(\)$/, "")
    .replace(/^-+|[-.:]+$/g, "");

/** Empty when the request says more than such sentences can. */
export function thingsWanted(request: string): ThingsWanted {
  const sentences = request.length > MAX_CHARACTERS ? [] : request.split(/(?<=[.!?;])\s+|\n+/);
  const plainly = sentences.filter((sentence) => !CONDITION.test(sentence));
  const renamed = plainly.flatMap((sentence) => {
    const [, from, to] = RENAMED.exec(sentence) ?? [];
    return from === undefined || to === undefined
      ? []
      : [{ from: stripPunctuation(from), to: stripPunctuation(to) }];
  });
  return {
    version: plainly.map((sentence) => VERSION.exec(sentence)?.[1]).findLast(Boolean),
    there: [...plainly.flatMap(addedIn), ...renamed.map(({ to }) => to), ...plainly.flatMap(setIn)],
    nowhere: EVERYWHERE.test(request) ? renamed.map(({ from }) => from) : [],
    undepended: plainly.flatMap((sentence) => UNDEPENDED.exec(sentence)?.[1] ?? []),
  };
}

function addedIn(sentence: string): readonly string[] {
  const [, called, added] = ADDED.exec(sentence) ?? [];
  return added !== undefined && (called !== undefined || CODE_NAME.test(added))
    ? [stripPunctuation(added)]
    : [];
}

function setIn(sentence: string): readonly string[] {
  if (VERSION.test(sentence)) return [];
  const value = SET.exec(sentence)
    ?.slice(1)
    .find(Boolean)
    ?.replace(/[.,]+$/, "");
  return value === undefined || value === "" ? [] : [value];
}

/** What is not as the request says, for the model and for people; empty when everything is. */
export async function thingsNotAsNamed(
  request: string,
  open: () => Promise<Box>,
): Promise<readonly string[]> {
  const { version, there, nowhere, undepended } = thingsWanted(request);
  if (version === undefined && there.length + nowhere.length + undepended.length === 0) return [];
  const box = await open();
  return [
    ...(version === undefined ? [] : await versionsBut(version, box)),
    ...(await dependedOn(undepended, box)),
    ...(await importedStill(undepended, box)),
    ...(await notIn(there, box)),
    ...(await leftIn(nowhere, box)),
  ];
}

/** How to read the version and the dependencies in a manifest, if it states them plainly. */
interface Manifest {
  readonly file: string;
  readonly version: (text: string) => string | undefined;
  readonly names: (text: string, name: string) => boolean;
}

const line = (pattern: RegExp) => (text: string) => pattern.exec(text)?.[1];
const alwaysFalse = (): boolean => false;
const escaped = (name: string): string => name.replaceAll(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`);
const found = (text: string, pattern: string): boolean => new RegExp(pattern, "im").test(text);

const MANIFESTS: readonly Manifest[] = [
  {
    file: "package.json",
    version: line(/^ {0,4}\t?"version"\s*:\s*"([^"]+)"/m),
    names: (text, name) => found(text, `^\\s*"${escaped(name)}"\\s*:\\s*"[^"]*"`),
  },
  {
    file: "Cargo.toml",
    version: line(/^\[package\][^[]*?^version\s*=\s*"([^"]+)"/m),
    names: (text, name) =>
      found(text, `^${escaped(name)}(?:\\.workspace)?\\s*=|^\\[[\\w.-]*dependencies\\.${escaped(name)}\\]`),
  },
  {
    file: "pyproject.toml",
    version: line(/^\[(?:project|tool\.poetry)\][^[]*?^version\s*=\s*"([^"]+)"/m),
    names: (text, name) =>
      found(text, `^\\s*"${escaped(name)}(?:[ <>=!~;[].*)?",?\\s*$|^${escaped(name)}\\s*=`),
  },
  { file: "setup.cfg", version: line(/^version\s*=\s*(\d\S*)\s*$/m), names: alwaysFalse },
  { file: "VERSION", version: line(/^\s*v?(\d\S*)\s*$/), names: alwaysFalse },
  {
    file: "requirements.txt",
    version: () => undefined,
    names: (text, name) => found(text, `^${escaped(name)}(?:[ <>=!~;[].*)?$`),
  },
  {
    file: "go.mod",
    version: () => undefined,
    names: (text, name) => found(text, `(?:^|[\\s/])${escaped(name)}(?:/v\\d+)? v\\d`),
  },
];

const MAX_BYTES = 256 * 1024;

async function textIn(box: Box, file: string): Promise<string | undefined> {
  const read = await box.read(file, { offset: 0, limit: MAX_BYTES });
  return read.kind === "ok" ? textOfBytes(read.value.content) : undefined;
}

/**
 * Reports a wrong version only if every manifest with a version has another one: of several packages, any may be meant,
 * even one in a subfolder that was changed.
 */
async function versionsBut(wanted: string, box: Box): Promise<readonly string[]> {
  const others: string[] = [];
  for (const { path, what } of (await box.changes()).all) {
    const manifest = MANIFESTS.find(({ file }) => path.endsWith(`/${file}`));
    if (manifest === undefined || what === "deleted") continue;
    if (manifest.version((await textIn(box, path)) ?? "") === wanted) return [];
  }
  for (const { file, version } of MANIFESTS) {
    const is = version((await textIn(box, `${box.workspace}/${file}`)) ?? "");
    if (is === undefined) continue;
    if (is === wanted || is.startsWith(`${wanted}.`)) return [];
    others.push(`${file} still has version ${visibleLine(is)}`);
  }
  return others;
}

async function dependedOn(packages: readonly string[], box: Box): Promise<readonly string[]> {
  const left: string[] = [];
  for (const { file, names } of packages.length === 0 ? [] : MANIFESTS) {
    const text = (await textIn(box, `${box.workspace}/${file}`)) ?? "";
    for (const each of packages) if (names(text, each)) left.push(`${file} still names ${visibleLine(each)}`);
  }
  return left;
}

/** Most changed files that are searched: with more, the claim is believed. */
const MAX_FILES = 30;

/** Equates the spellings that languages use for a name: `--dry-run`, `dry_run`, `dryRun`. */
const foldSpelling = (text: string): string => text.replaceAll(/[-_]/g, "").toLowerCase();

async function notIn(names: readonly string[], box: Box): Promise<readonly string[]> {
  if (names.length === 0) return [];
  const { all, incomplete } = await box.changes();
  const wanted = new Set(names);
  let looked = 0;
  for (const { path, what } of all) {
    if (what === "deleted" || isCache(path)) continue;
    if ((looked += 1) > MAX_FILES) return [];
    const text = foldSpelling((await textIn(box, path)) ?? "");
    for (const name of wanted) if (text.includes(foldSpelling(name))) wanted.delete(name);
  }
  return incomplete ? [] : [...wanted].map((name) => `no file that was changed has ${visibleLine(name)}`);
}

const GREP_KEEP = { head: 4096, tail: 0 };
const MAX_NAMED = 5;

/** Text for people may still mention the old name. */
async function leftIn(names: readonly string[], box: Box): Promise<readonly string[]> {
  const left: string[] = [];
  for (const name of names) {
    const files = await grep(box, ["-wF", "-e", name]);
    if (files !== "") left.push(`${visibleLine(name)} is still in ${files}`);
  }
  return left;
}

/** A package that should be gone must not be imported either, in the forms of JavaScript, Python and Go. */
async function importedStill(packages: readonly string[], box: Box): Promise<readonly string[]> {
  const left: string[] = [];
  for (const name of packages) {
    const quoted = `(require\\(|from|import)[[:space:]]*['"]${escaped(name)}['"/]`;
    const word = `^[[:space:]]*(import|from)[[:space:]]+${escaped(name)}([[:space:].,;]|$)`;
    // Alone on its line; a list in JSON may contain any other name like that.
    const inGo = /^[\w-]+(?:\.[\w-]+)+\//.test(name) ? ["-e", `^[[:space:]]+"${escaped(name)}"$`] : [];
    const files = await grep(box, ["-E", "-e", quoted, "-e", word, ...inGo]);
    if (files !== "") left.push(`${visibleLine(name)} is still imported in ${files}`);
  }
  return left;
}

/** The matching files except prose, named for people; empty when no file matches. */
async function grep(box: Box, what: readonly string[]): Promise<string> {
  const prose = ["md", "rst", "txt", "adoc"].map((extension) => `:!*.${extension}`);
  const words = ["git", "grep", "--no-index", "--exclude-standard", "-zlI", ...what, "--", ".", ...prose];
  const { exit_code, stdout } = await box.exec({ words, timeoutMs: TIME_MS, keep: GREP_KEEP }, NEVER);
  const files = exit_code === 0 ? textOfBytes(stdout.head).split("\0").filter(Boolean) : [];
  const more = files.length > MAX_NAMED ? ", …" : "";
  return `${files.slice(0, MAX_NAMED).map(visibleLine).join(", ")}${more}`;
}

/** A command with which a small model can rename in all files, if a shell reads both names literally. */
export function renamingOf(request: string): string | undefined {
  const { there, nowhere } = thingsWanted(request);
  const [from = "", to = ""] = [nowhere[0], there.at(-1)];
  if (nowhere.length !== 1 || !/^\w+$/.test(from) || !/^\w+$/.test(to)) return undefined;
  return `git grep -lwF ${from} | xargs sed -i 's/\\b${from}\\b/${to}/g'`;
}
