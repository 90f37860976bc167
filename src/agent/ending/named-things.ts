import type { Box } from "../../core/ports.ts";
import { textOfBytes } from "../../core/text/bytes.ts";
import { visibleLine } from "../../core/text/visible.ts";
import { isCache } from "./run-changes.ts";

/*
 * What a request says by name about things in files, and whether that is so at the end: the project's new version, a
 * function or value that should exist, a name that should be replaced everywhere, a dependency that should be gone.
 * Small models write the new version into the changelog alone, or rename in one file of ten, and say that it is done.
 * As with files, only plain English sentences that say exactly this are read.
 */

export interface ThingsWanted {
  readonly version: string | undefined;
  /** Names that a changed file has to contain. */
  readonly there: readonly string[];
  /** Names that no code may contain any more. */
  readonly nowhere: readonly string[];
  /** Packages that no manifest of the project may name any more. */
  readonly undepended: readonly string[];
}

/** A longer text describes a task in which names may stand for anything. */
const MOST_CHARACTERS = 600;

const ASKED = "^(?:(?:please|kindly|now|then|first|next),? )*(?:(?:can|could|would|will) you )?(?:please )?";
const begins = (text: string): RegExp => new RegExp(`${ASKED}${text}(?=$|[ ,:;.(])`, "i");

const OF_THIS = "(?:package|project|crate|library|app)";
const VERSION = begins(
  `(?:bump|set|change|update|raise|increase|upgrade) (?:the |this |our )?(?:${OF_THIS}(?:'s)? )?version(?: number)?(?: of (?:the|this) ${OF_THIS})?(?: from v?\\d[\\w.+-]*)? to v?(\\d+(?:\\.\\d+)+(?:[-+][\\w.+-]*\\w)?)`,
);
const KIND =
  "(?:functions?|methods?|class|structs?|interfaces?|types?|enums?|traits?|constants?|variables?|fields?|propert(?:y|ies)|options?|flags?|parameters?|arguments?|settings?|(?:sub)?commands?|helpers?|macros?)";
const WORD = "(`[\\w$.:-]+(?:\\(\\))?`|[\\w$-]+(?:\\(\\))?)";
const ADDED = begins(
  `(?:add|create|implement|write|define|introduce) (?:me )?(?:an? |the )?(?:(?:new|optional|public|static|boolean|helper|simple|small|pure) )*${KIND} (called |named )?${WORD}`,
);
const RENAMED = begins(
  `rename (?:the |all |every )?(?:${KIND} |symbol |identifier )${WORD} (?:to|into|as) ${WORD}`,
);
const UNDEPENDED = begins(
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
const NAME = /^(?:`.*`|--?\w.*|.*\(\)|[A-Za-z][a-z0-9]*[A-Z_$]\S*|[A-Z]\w*\d\w*)$/;
const EVERYWHERE =
  /\b(?:everywhere|throughout|in (?:all|every) (?:files?|places?|code)|(?:all|every) (?:of )?(?:its |the )?(?:uses?|usages?|callers?|references?|occurrences?))\b/i;
const CONDITION = /\b(?:if|unless|where|when|wherever|instead)\b/i;

const bare = (word: string): string =>
  word
    .replaceAll("`", "")
    .replace(/\(\)$/, "")
    .replace(/^-+|[-.:]+$/g, "");

/** Empty when the request says more than such sentences can. */
export function thingsWanted(request: string): ThingsWanted {
  const sentences = request.length > MOST_CHARACTERS ? [] : request.split(/(?<=[.!?;])\s+|\n+/);
  const plainly = sentences.filter((sentence) => !CONDITION.test(sentence));
  const renamed = plainly.flatMap((sentence) => {
    const [, from, to] = RENAMED.exec(sentence) ?? [];
    return from === undefined || to === undefined ? [] : [{ from: bare(from), to: bare(to) }];
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
  return added !== undefined && (called !== undefined || NAME.test(added)) ? [bare(added)] : [];
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
const never = (): boolean => false;
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
  { file: "setup.cfg", version: line(/^version\s*=\s*(\d\S*)\s*$/m), names: never },
  { file: "VERSION", version: line(/^\s*v?(\d\S*)\s*$/), names: never },
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

const MOST_BYTES = 256 * 1024;

async function textIn(box: Box, file: string): Promise<string | undefined> {
  const read = await box.read(file, { offset: 0, limit: MOST_BYTES });
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
const MOST_FILES = 30;

/** Equates the spellings that languages use for a name: `--dry-run`, `dry_run`, `dryRun`. */
const plain = (text: string): string => text.replaceAll(/[-_]/g, "").toLowerCase();

async function notIn(names: readonly string[], box: Box): Promise<readonly string[]> {
  if (names.length === 0) return [];
  const { all, incomplete } = await box.changes();
  const wanted = new Set(names);
  let looked = 0;
  for (const { path, what } of all) {
    if (what === "deleted" || isCache(path)) continue;
    if ((looked += 1) > MOST_FILES) return [];
    const text = plain((await textIn(box, path)) ?? "");
    for (const name of wanted) if (text.includes(plain(name))) wanted.delete(name);
  }
  return incomplete ? [] : [...wanted].map((name) => `no file that was changed has ${visibleLine(name)}`);
}

const TIME_MS = 10_000;
const KEEP = { head: 4096, tail: 0 };
const MOST_NAMED = 5;
const NEVER = new AbortController().signal;

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
  const { exit_code, stdout } = await box.exec({ words, timeoutMs: TIME_MS, keep: KEEP }, NEVER);
  const files = exit_code === 0 ? textOfBytes(stdout.head).split("\0").filter(Boolean) : [];
  const more = files.length > MOST_NAMED ? ", …" : "";
  return `${files.slice(0, MOST_NAMED).map(visibleLine).join(", ")}${more}`;
}

/** A command with which a small model can rename in all files, if a shell reads both names literally. */
export function renamingOf(request: string): string | undefined {
  const { there, nowhere } = thingsWanted(request);
  const [from = "", to = ""] = [nowhere[0], there.at(-1)];
  if (nowhere.length !== 1 || !/^\w+$/.test(from) || !/^\w+$/.test(to)) return undefined;
  return `git grep -lwF ${from} | xargs sed -i 's/\\b${from}\\b/${to}/g'`;
}
