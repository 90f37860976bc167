/**
 * COPY and ADD of a Dockerfile: texts that are written in it, downloads, files of the build's context, each pinned by
 * the hash of its bytes, and files of stages and other images. Contents of repositories are not taken.
 */
import type { Context, ContextMatch } from "./context-files.ts";
import { isPlaceOrPattern, type TakenPaths, USER_FORM } from "./recipe.ts";

export interface CopiedFile {
  /** Relative to the project's top. */
  readonly path: string;
  /** Absolute, in the image. */
  readonly to: string;
  /** The file's own name if `to` may be a folder of the image: the file is then put into that folder. */
  readonly within?: string;
  readonly sha256: string;
  readonly mode: string;
  /** Root when left out. */
  readonly owner?: string;
}

interface CopyLine {
  readonly run: string;
  readonly files?: readonly CopiedFile[];
  readonly from?: TakenPaths;
}

interface CopyResult {
  readonly lines: readonly CopyLine[];
  readonly why?: string;
  readonly sources: readonly string[];
}

interface CopyInstruction {
  readonly name: string;
  readonly rest: string;
  readonly line: number;
  readonly body: string | undefined;
  /** The folder of the stage at this line. */
  readonly folder: string;
  readonly scope: Scope;
  readonly context: Context | undefined;
  /** The number of the stage that `--from` names, or a text that says why there is none. */
  readonly stageOf: (from: string) => number | string;
}

const FLAGS: Readonly<Record<string, readonly string[]>> = {
  COPY: ["from", "chown", "chmod", "link"],
  ADD: ["chown", "chmod", "checksum", "link"],
};
const ONE_TARGET = "several files need a folder as their target, with a slash at its end";
const NO_FILES = "no file of the repository is in the system layer; set-up commands see the workspace";

export function linesOfCopy(bringing: CopyInstruction): CopyResult {
  const { name, folder, scope, body } = bringing;
  const { flags, plain, to, sources } = readWords(bringing);
  const odd = [...flags.keys()].find((flag) => FLAGS[name]?.includes(flag) !== true);
  if (odd !== undefined) return notTaken(`--${odd} is not known`);
  if (sources.length === 0) return notTaken("it names no source or no target");
  const isFolder = /(?:^|\/)\.{0,2}$/.test(to);
  const place = {
    to: isFolder ? `${joinFolders(folder, to)}/`.replace("//", "/") : joinFolders(folder, to),
    flags,
  };
  if (sources.length > 1 && !isFolder) return notTaken(ONE_TARGET);
  const from = flags.get("from");
  if (from !== undefined) return fromStage(sources, place, { ...bringing, from });
  if (body !== undefined) {
    const written = inlineLine(sources, place, { plain, body, scope });
    return written === undefined
      ? notTaken("inline text must be the only source")
      : { lines: [{ run: written }], sources: [] };
  }
  if (sources.some((source) => /^(?:[\w+.-]+:\/\/|git@)/.test(source))) {
    const lines = name === "ADD" ? downloadLines(sources, place) : undefined;
    if (lines === undefined)
      return notTaken("only ADD downloads, and only single files over http or https with a sha256");
    return { lines: lines.map((run) => ({ run })), sources: [] };
  }
  return fromContext(sources, place, bringing);
}

interface Words {
  readonly flags: ReadonlyMap<string, string>;
  readonly plain: string;
  readonly to: string;
  readonly sources: readonly string[];
}

function readWords({ rest, line, scope }: CopyInstruction): Words {
  const [flagWords = ""] = /^(?:--\S+\s+)+/.exec(rest) ?? [];
  const flags = new Map(
    Array.from(flagWords.matchAll(/(?<!\S)--([\w-]+)(?:=(\S+))?\s/g), ([, flag = "", value = ""]) => [
      flag,
      expandVariables(unquoted(value), scope),
    ]),
  );
  const plain = rest.slice(flagWords.length);
  const words = plain.startsWith("[") ? wordsOf(plain, line) : plain.split(/\s+/).map(unquoted);
  const [to = "", ...sources] = words.map((word) => expandVariables(word, scope)).toReversed();
  return { flags, plain, to, sources: sources.toReversed() };
}

const notTaken = (why: string, sources: readonly string[] = []): CopyResult => ({ lines: [], why, sources });

/** Archives that ADD unpacks, recognized by their usual names. */
const ARCHIVE = /\.(?:tar|tgz|tbz2?|txz|tar\.(?:gz|bz2|xz))$/i;
const MODE = /^[0-7]{3,4}$/;
const UNPACKED = "/run/harness-unpacked";

function fromContext(
  sources: readonly string[],
  place: Place,
  { name, rest, context }: CopyInstruction,
): CopyResult {
  const [owner, mode] = [place.flags.get("chown"), place.flags.get("chmod")];
  const found = sources.map((source) => context?.get(source));
  const wrong = found.find((each) => typeof each === "string");
  const fault =
    typeof wrong === "string"
      ? wrong
      : !isOwned(place)
        ? NO_OWNER
        : place.flags.has("checksum")
          ? "a checksum is only for downloads"
          : found.includes(undefined)
            ? NO_FILES
            : undefined;
  if (fault !== undefined) return notTaken(fault, sources);
  const matches = found.flatMap((each) => (typeof each === "object" ? [...each] : []));
  if (matches.length > 1 && !place.to.endsWith("/")) return notTaken(ONE_TARGET, sources);
  const isArchive = (match: ContextMatch): boolean =>
    name === "ADD" && !match.isFolder && match.files.every((file) => ARCHIVE.test(file.path));
  const archives = matches.filter(isArchive);
  if (archives.length > 0 && (owner !== undefined || archives.length < matches.length))
    return notTaken("an archive must be the only source, and keeps the owners that it names", sources);
  const files = matches.flatMap((match) =>
    match.files.map((file) => ({
      path: file.path,
      ...(archives.length > 0 ? { to: `${UNPACKED}/${file.below}` } : placeOf(match, file.below, place.to)),
      sha256: file.sha256,
      mode: mode ?? (file.executable ? "755" : "644"),
      ...(owner === undefined ? {} : { owner }),
    })),
  );
  const run =
    archives.length === 0
      ? asComment({ name, rest })
      : `mkdir -p ${quoted(place.to)} && for each in ${UNPACKED}/*; do tar -xf "$each" -C ${quoted(place.to)} || exit; done; rm -rf ${UNPACKED}`;
  return { lines: [{ run, files }], sources };
}

const asComment = ({ name, rest }: Pick<CopyInstruction, "name" | "rest">): string =>
  `: ${quoted(`${name} ${rest}`.slice(0, 400))}`;

/** Files of a stage: its places by name or by pattern, but not the whole stage. */
function fromStage(
  sources: readonly string[],
  place: Place,
  { from, body, stageOf, ...instruction }: CopyInstruction & { readonly from: string },
): CopyResult {
  const paths = sources.map((source) => joinFolders("/", source));
  if (body !== undefined) return notTaken("inline text is not a file of a stage");
  if (paths.some((each) => /^\/\**$/.test(each)))
    return notTaken("another image is not copied as a whole: start from it, or name what is needed from it");
  const odd = paths.find((each) => !isPlaceOrPattern(each));
  if (odd !== undefined) return notTaken(`${odd} is not a valid pattern`);
  if (!isOwned(place)) return notTaken(NO_OWNER);
  const stage = stageOf(from);
  if (typeof stage === "string") return notTaken(stage);
  const [owner, mode] = [place.flags.get("chown"), place.flags.get("chmod")];
  const own = { ...(mode === undefined ? {} : { mode }), ...(owner === undefined ? {} : { owner }) };
  return {
    lines: [{ run: asComment(instruction), from: { stage, paths, to: place.to, ...own } }],
    sources: [],
  };
}

const NO_OWNER = "its owner or mode is not a name or a number";

const isOwned = ({ flags }: Place): boolean =>
  USER_FORM.test(flags.get("chown") ?? "root") && MODE.test(flags.get("chmod") ?? "644");

/**
 * A folder's content goes below `to`; a file goes into the folder `to` or becomes `to`; if the image has a folder
 * there, the file goes into that folder.
 */
function placeOf(match: ContextMatch, below: string, to: string): Pick<CopiedFile, "to" | "within"> {
  if (match.isFolder) return { to: `${to}/${below}`.replaceAll(/\/+/g, "/") };
  return to.endsWith("/") ? { to: to + below } : { to, within: below };
}

interface Place {
  /** Absolute; a folder if it ends with a slash. */
  readonly to: string;
  readonly flags: ReadonlyMap<string, string>;
}

interface InlineText {
  readonly plain: string;
  readonly body: string;
  readonly scope: Scope;
}

function inlineLine(
  sources: readonly string[],
  place: Place,
  { plain, body, scope }: InlineText,
): string | undefined {
  const word = /^<<-?(["']?)([\w.-]+)\1\s/.exec(plain);
  if (sources.length !== 1 || word === null || place.flags.has("checksum")) return undefined;
  const [text, file] = [word[1] === "" ? expandVariables(body, scope) : body, word[2] ?? ""];
  return putAt(place, file, (at) => `printf '%s\\n' ${quoted(text)} > ${at}`);
}

/** `make` gets the file's place as a word for a shell. */
function putAt({ to, flags }: Place, file: string, make: (at: string) => string, mode?: string): string {
  const at = quoted(to.endsWith("/") ? to + file : to);
  const [chown, chmod] = [flags.get("chown"), flags.get("chmod") ?? mode];
  return [
    `mkdir -p "$(dirname ${at})"`,
    make(at),
    ...(chmod === undefined ? [] : [`chmod ${quoted(chmod)} ${at}`]),
    ...(chown === undefined ? [] : [`chown ${quoted(chown)} ${at}`]),
  ].join(" && ");
}

function downloadLines(sources: readonly string[], place: Place): readonly string[] | undefined {
  const sum = place.flags.get("checksum");
  if (sum !== undefined && (sources.length > 1 || !/^sha256:[0-9a-f]{64}$/.test(sum))) return undefined;
  const lines = sources.map((source) => {
    const url = URL.parse(source);
    const file = url?.pathname.split("/").at(-1) ?? "";
    if (url === null || !/^https?:$/.test(url.protocol)) return undefined;
    // A repository is fetched by other means, and a folder is no file.
    if (file.endsWith(".git") || (file === "" && place.to.endsWith("/"))) return undefined;
    const from = quoted(url.href);
    return putAt(
      place,
      file,
      (at) =>
        `if command -v curl >/dev/null; then curl -fsSL -o ${at} ${from}; else wget -q -O ${at} ${from}; fi${
          sum === undefined ? "" : ` && printf '%s  %s\\n' ${sum.slice(7)} ${at} | sha256sum -c - >/dev/null`
        }`,
      "600",
    );
  });
  return lines.every((each) => each !== undefined) ? lines : undefined;
}

/** Words of a Dockerfile: quotes, variables, folders. */

/** Something that cannot be read; the message names the line. */
export class Fault extends Error {}

/** The variables and arguments known where a word stands. */
interface Scope {
  readonly env: Readonly<Record<string, string>>;
  readonly args: Readonly<Record<string, string>>;
}

export const unquoted = (text: string): string =>
  text.replace(/"((?:[^"\\]|\\[^])*)"|'([^']*)'|\\([^])/g, (_, double, single, one) =>
    double === undefined ? String(single ?? one ?? "") : String(double).replace(/\\(["\\])/g, "$1"),
  );

export function wordsOf(rest: string, line: number): readonly string[] {
  try {
    const words: unknown = JSON.parse(rest);
    if (Array.isArray(words) && words.length > 0 && words.every((word) => typeof word === "string"))
      return words;
  } catch {
    // Reported below.
  }
  throw new Fault(`line ${line}: not a list of words: ${rest.slice(0, 100)}`);
}

/** The values in images that set nothing else. */
const USUAL: Readonly<Record<string, string>> = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOME: "/root",
};

/** `$NAME`, `${NAME}`, `${NAME:-else}` and `${NAME:+then}`. */
export const expandVariables = (text: string, scope: Scope): string =>
  text.replace(
    /\$(?:(\w+)|\{(\w+)(?::([-+])([^}]*))?\})/g,
    (_, bare: string | undefined, name = "", how = "", other = "") => {
      const value = valueOf(bare ?? String(name), scope);
      if (how === "") return value;
      return (value === "") === (how === "-") ? String(other) : how === "-" ? value : "";
    },
  );

const valueOf = (name: string, { env, args }: Scope): string => env[name] ?? args[name] ?? USUAL[name] ?? "";

export function joinFolders(folder: string, next: string): string {
  const parts = next.startsWith("/") ? [] : folder.split("/").filter((each) => each !== "");
  for (const each of next.split("/")) {
    if (each === "" || each === ".") continue;
    if (each === "..") parts.pop();
    else parts.push(each);
  }
  return `/${parts.join("/")}`;
}

export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
