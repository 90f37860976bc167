import type { Ecosystem } from "./lock-entry.ts";
import { POPULAR } from "./popular-names.generated.ts";

/** Names that are taken for those of widely used packages: by a letter, a separator, a scope, or a letter of another script. */

/** Digits and letters that look alike. */
const DIGITS = /^(?:0o|o0|1[li]|[li]1|5s|s5|3e|e3|4a|a4)$/;
/** The plural of a shorter name is a name of its own. */
const LONG = 10;
/** Shorter names are near to each other by chance. */
const MIN_LENGTH = 5;

interface Table {
  readonly names: ReadonlySet<string>;
  /** A name without one of its letters → the full names. */
  readonly shorter: ReadonlyMap<string, readonly string[]>;
  /** Without separators and scope → the name. */
  readonly bare: ReadonlyMap<string, string>;
}

/** Makes each table on first use: most trees have names of one ecosystem. */
class Tables {
  readonly #made = new Map<Ecosystem, Table>();

  of(ecosystem: Ecosystem): Table | undefined {
    const names = POPULAR[ecosystem];
    if (names === undefined) return undefined;
    const table = this.#made.get(ecosystem) ?? tableOf(names.map((name) => plain(name, ecosystem)));
    this.#made.set(ecosystem, table);
    return table;
  }
}

const tables = new Tables();

function tableOf(names: readonly string[]): Table {
  const shorter = new Map<string, string[]>();
  for (const name of names) {
    if (name.length < MIN_LENGTH) continue;
    for (const each of shortened(name)) shorter.set(each, [...(shorter.get(each) ?? []), name]);
  }
  const long = names.filter((name) => bareOf(name).length >= MIN_LENGTH + 1);
  return { names: new Set(names), shorter, bare: new Map(long.map((name) => [bareOf(name), name])) };
}

function shortened(name: string): readonly string[] {
  return [...new Set(Array.from(name, (_, at) => name.slice(0, at) + name.slice(at + 1)))];
}

function bareOf(name: string): string {
  return name.replace(/[-_.@/]/g, "");
}

/** A name in the form in which its registry compares names. */
function plain(name: string, ecosystem: Ecosystem): string {
  const lower = name.toLowerCase();
  return ecosystem === "pip"
    ? lower.replace(/[-_.]+/g, "-")
    : ecosystem === "cargo"
      ? lower.replaceAll("_", "-")
      : lower;
}

/** Whether a name has letters other than ASCII's, which may look like these. */
export const hasLookAlike = (name: string): boolean => /[^\x20-\x7e]/.test(name);

/** The widely used package that a name is near to; undefined where it is one itself, or near to none. */
export function nearName(written: string, ecosystem: Ecosystem): string | undefined {
  const table = tables.of(ecosystem);
  const name = plain(written, ecosystem);
  if (table === undefined || table.names.has(name)) return undefined;
  // Names of one owner are near to each other, and nobody else can have them.
  if (ecosystem === "npm" && name.startsWith("@")) return nearScope(name, table);
  const bare = table.bare.get(bareOf(name));
  if (bare !== undefined && !isFamily(name, bare)) return bare;
  if (name.length < MIN_LENGTH - 1 || name.length > 100) return undefined;
  const grown = shortened(name);
  const near = [
    ...(table.shorter.get(name) ?? []),
    ...grown.filter((each) => each.length >= MIN_LENGTH && table.names.has(each)),
    ...grown.flatMap((each) => table.shorter.get(each) ?? []),
  ];
  return near.find((popular) => isTypo(name, popular));
}

/** `babel-core` is the old name of `@babel/core`, whereas `types-node` is another name than `@types/node`. */
const isFamily = (name: string, popular: string): boolean =>
  popular.startsWith("@babel/") && name.startsWith("babel-");

/** Compares scopes, the letters before the slash: `@typse/node`. */
function nearScope(name: string, table: Table): string | undefined {
  const [scope = "", rest = ""] = name.split("/");
  for (const popular of table.names) {
    if (!popular.startsWith("@")) continue;
    const [known = "", other = ""] = popular.split("/");
    if (known.length >= MIN_LENGTH && known !== scope && rest === other && isTypo(scope, known))
      return popular;
  }
  return undefined;
}

/**
 * One letter more, less or changed, or two swapped; differing numbers and plurals do not count, as they tell packages
 * apart.
 */
export function isTypo(name: string, popular: string): boolean {
  const [longer, shorter] = name.length >= popular.length ? [name, popular] : [popular, name];
  const start = alikeAt(longer, shorter, (text, at) => text[at]);
  const end = alikeAt(longer.slice(start), shorter.slice(start), (text, at) => text.at(-1 - at));
  const [more, less] = [longer.slice(start, longer.length - end), shorter.slice(start, shorter.length - end)];
  if (/\d/.test(more + less)) return DIGITS.test(more + less);
  if (less.length === 0) return more.length === 1 && !(isPlural(more, end, shorter) && popular.length < LONG);
  if (more.length === 1) return popular.length > MIN_LENGTH;
  return more.length === 2 && more[0] === less[1] && more[1] === less[0];
}

/** How many letters in a row are the same. */
function alikeAt(a: string, b: string, letter: (text: string, at: number) => string | undefined): number {
  let at = 0;
  while (at < b.length && letter(a, at) === letter(b, at)) at += 1;
  return at;
}

const isPlural = (more: string, end: number, shorter: string): boolean =>
  end === 0 && more === "s" && !shorter.endsWith("s");
