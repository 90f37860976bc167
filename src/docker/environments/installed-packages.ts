import type { Installed, Package } from "../../core/run-record.ts";
import { BOX_HOME, type Box } from "../../core/ports.ts";
import { fieldsIn, fieldsOf } from "../../core/raw-data.ts";
import { ADDED_PACKAGES } from "./system-steps.ts";
import { CACHE } from "./tool-variables.ts";

/** What package managers have put into a box, according to their own lists and the names of what they keep. */

/** Not searched: build output, what a manager fetched for its own use, and the inside of packages. */
const SKIPPED_PATHS = [
  ".git",
  "__pycache__",
  "target",
  "_cacache",
  "*/node_modules/[!.]*",
  "*/site-packages/[!.]*",
  "*/registry/src",
  "*/go/build",
  "*/.cache/go-build",
  "*/mod/*@v[0-9]*",
  "*/vendor/bundle/ruby/*/gems",
] as const;

/** Names that identify a package by themselves. */
const PACKAGE_PATHS = [
  "*/node_modules/.pnpm/*@*",
  "*/site-packages/*.dist-info",
  "*/registry/cache/*.crate",
  "*/cache/download/*.zip",
  "*/.m2/repository/*.jar",
  "*/m2/*.jar",
  "*/modules-2/files-2.1/*.jar",
  "*/specifications/*.gemspec",
  "*/node_modules/.bin/*",
  "*/.venv/bin/*",
  "*/bun/*@*@@@*",
] as const;

/** Lists whose content identifies packages. */
const LISTS = [
  "*/node_modules/.package-lock.json",
  "*/node_modules/.yarn-integrity",
  "*/node_modules/.yarn-state.yml",
  "*/vendor/composer/installed.json",
  ADDED_PACKAGES,
] as const;

const anyOf = (patterns: readonly string[]): string =>
  patterns.map((each) => `${each.includes("/") ? "-path" : "-name"} '${each}'`).join(" -o ");

const CONTENT_BYTES = 4 * 2 ** 20;

/** Prints `P` and a path, or `F` and the path of a list followed by its lines, each after a `|`. */
const LIST_SCRIPT = String.raw`command -v find head sed >/dev/null || exit 3
find "$@" '(' ${anyOf(PACKAGE_PATHS)} ')' -prune -print -o -type d '(' ${anyOf(SKIPPED_PATHS)} ')' -prune -o -type f '(' ${anyOf(LISTS)} ')' -print 2>/dev/null |
while IFS= read -r each; do
  case $each in
    ${LISTS.join("|")}) printf 'F%s\n' "$each"; head -c ${CONTENT_BYTES} "$each" | sed 's/^/|/'; echo ;;
    *) printf 'P%s\n' "$each" ;;
  esac
done`;

const LIMIT_MS = 30_000;
const OUTPUT_BYTES = 32 * 2 ** 20;

export interface ListedPackages {
  readonly packages: readonly Package[];
  /** Absolute paths of programs, `…/node_modules/.bin/NAME` and `…/.venv/bin/NAME`. */
  readonly programs: readonly string[];
  /** Everything was searched. */
  readonly whole: boolean;
}

/**
 * Searches these folders and those where tools keep packages. Undefined if the box cannot tell: it is gone, or its
 * image lacks the tools.
 */
export async function listPackages(
  box: Box,
  folders: readonly string[],
  signal: AbortSignal,
): Promise<ListedPackages | undefined> {
  const words = ["sh", "-c", LIST_SCRIPT, "sh", ...folders, BOX_HOME, CACHE, ADDED_PACKAGES];
  const keep = { head: OUTPUT_BYTES, tail: 0 };
  const ended = await box.exec({ words, timeoutMs: LIMIT_MS, keep }, signal).catch(() => undefined);
  if (ended === undefined || (ended.exit_code !== 0 && !ended.timed_out)) return undefined;
  const output = Buffer.from(ended.stdout.head).toString("utf8");
  return {
    packages: packagesIn(output),
    programs: programPaths(output),
    whole: ended.stdout.lost === 0 && !ended.timed_out,
  };
}

/** Pure. Each package once, ordered by ecosystem, name and version; what cannot be read as a package is left out. */
export function packagesIn(output: string): readonly Package[] {
  const found = new Map<string, Package>();
  const add = (ecosystem: string, name: string | undefined, version: string | undefined): void => {
    if (name === undefined || version === undefined || !NAME.test(name) || !VERSION.test(version)) return;
    const each = { ecosystem, name, version };
    found.set(keyOf(each), each);
  };
  for (const [place, content] of entriesIn(output))
    if (content === undefined) byName(place, add);
    else byContent(place, content, add);
  return [...found].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each);
}

const programPaths = (output: string): readonly string[] =>
  [...output.matchAll(/^P(\/.*\/(?:node_modules\/\.bin|\.venv\/bin)\/[\w@][\w.-]*)$/gm)]
    .map(([, program = ""]) => program)
    .toSorted();

type Add = (ecosystem: string, name: string | undefined, version: string | undefined) => void;

const NAME = /^[\w@][\w@.+:/~-]{0,213}$/;
const VERSION = /^[\w][\w.+:~!-]{0,99}$/;

function* entriesIn(output: string): Generator<readonly [place: string, content?: string]> {
  let list: { readonly place: string; readonly lines: string[] } | undefined;
  for (const line of output.split("\n")) {
    if (line.startsWith("|")) {
      list?.lines.push(line.slice(1));
      continue;
    }
    if (line === "") continue;
    if (list !== undefined) yield [list.place, list.lines.join("\n")];
    list = line.startsWith("F") ? { place: line.slice(1), lines: [] } : undefined;
    if (line.startsWith("P")) yield [line.slice(1)];
  }
  if (list !== undefined) yield [list.place, list.lines.join("\n")];
}

/** The two groups are the name, as a manager writes it in a path, and the version. */
const PATH_FORMS: readonly (readonly [
  ecosystem: string,
  form: RegExp,
  name?: (written: string) => string,
])[] = [
  ["npm", /\/\.pnpm\/((?:@[^/@+]+\+)?[^/@]+)@([^/_(]+)[^/]*$/, (written) => written.replace("+", "/")],
  ["npm", /\/bun\/((?:@[^/@]+\/)?[^/@]+)@([^/@]+)@@@[^/]*$/],
  ["pip", /\/site-packages\/([^/]+)-([^/-]+)\.dist-info$/, (written) => written.replaceAll("_", "-")],
  ["cargo", /\/registry\/cache\/[^/]+\/([^/]+?)-(\d+\.\d+\.\d+[^/]*)\.crate$/],
  [
    "go",
    /\/cache\/download\/(.+)\/@v\/([^/]+)\.zip$/,
    (written) => written.replaceAll(/!([a-z])/g, upperCaseLetter),
  ],
  [
    "maven",
    /\/(?:\.m2\/repository|m2)\/((?:[^/]+\/)+?[^/]+)\/([^/]+)\/[^/]+\.jar$/,
    (written) => coordinates(written),
  ],
  [
    "maven",
    /\/files-2\.1\/([^/]+\/[^/]+)\/([^/]+)\/[^/]+\/[^/]+\.jar$/,
    (written) => written.replace("/", ":"),
  ],
  ["bundler", /\/specifications\/([^/]+?)-(\d[^/-]*)(?:-[^/]+)?\.gemspec$/],
];

const upperCaseLetter = (_: string, letter: string): string => letter.toUpperCase();

function coordinates(written: string): string {
  const parts = written.split("/");
  return `${parts.slice(0, -1).join(".")}:${parts.at(-1) ?? ""}`;
}

function byName(place: string, add: Add): void {
  for (const [ecosystem, form, name = (written: string) => written] of PATH_FORMS) {
    const [, written, version] = form.exec(place) ?? [];
    if (written !== undefined) return add(ecosystem, name(written), version);
  }
}

function byContent(place: string, content: string, add: Add): void {
  if (place === ADDED_PACKAGES)
    for (const line of content.split("\n")) {
      const [name, version] = line.split("\t");
      add("apt", name?.split(":")[0], version);
    }
  else if (place.endsWith(".yarn-state.yml"))
    for (const [, name, version] of content.matchAll(YARN_STATE)) add("npm", name, version);
  else if (place.endsWith(".yarn-integrity"))
    for (const [requested, from] of entriesOf(fieldsIn(content)["lockfileEntries"]))
      add("npm", /^(@?[^@]+)@/.exec(requested)?.[1], /-(\d+\.\d+\.\d+[^/]*)\.tgz/.exec(String(from))?.[1]);
  else if (place.endsWith(".package-lock.json"))
    for (const [folder, about] of entriesOf(fieldsIn(content)["packages"])) {
      const { name, version } = fieldsOf(about);
      const short = folder.split("node_modules/").at(-1);
      if (folder.includes("node_modules/")) add("npm", textIn(name) ?? short, textIn(version));
    }
  else
    for (const [, about] of entriesOf(fieldsIn(content)["packages"])) {
      const { name, version } = fieldsOf(about);
      add("composer", textIn(name), textIn(version));
    }
}

const YARN_STATE = /^"?(@?[^@"\n]+)@(?:virtual:[^#"\n]*#)?npm:([^"\n]+?)"?:$/gm;

const textIn = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

const entriesOf = (value: unknown): readonly (readonly [string, unknown])[] =>
  typeof value === "object" && value !== null ? Object.entries(value) : [];

/** The most packages that are named; all of them are counted. */
const MAX_NAMED = 500;

const keyOf = ({ ecosystem, name, version }: Package): string => `${ecosystem} ${name} ${version}`;

/** Counts the packages that are there, and names those that were not there before. */
export function installedSince(before: readonly Package[], { packages, whole }: ListedPackages): Installed {
  const known = new Set(before.map(keyOf));
  const fresh = packages.filter((each) => !known.has(keyOf(each)));
  return {
    total: packages.length,
    new: fresh.length,
    packages: fresh.slice(0, MAX_NAMED),
    ...(whole ? {} : { incomplete: true as const }),
  };
}
