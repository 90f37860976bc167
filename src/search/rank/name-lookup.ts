import { lastName } from "../../core/text/file-paths.ts";
import type { Chunk } from "../index-words.ts";

/** A query that is nothing but a name: `JsonReader.peek()`, `fn parse_url`, `src/dict.c:452`. */
export interface Lookup {
  /** Path of a file, with the folders given in the query. */
  readonly path: string;
  readonly line: number | null;
  /** Names of a definition, the outermost first; empty if it can be none. */
  readonly names: readonly string[];
}

const MAX_LETTERS = 200;
const QUOTES = /^[`'"]+|[`'";,]+$/g;
const KEYWORD =
  /^(?:class|def|defn?|enum|fn|func|function|impl|interface|method|module|struct|sub|trait|type) +(?=\S+$)/;
const PLACE = /^(?:\.\/)?([^:]+?)(?::(\d+)(?::\d+)?)?$/;
const BETWEEN = /\.|::|->|#|\\/;
const NAME = /^[\p{L}_$][\p{L}\p{N}_$]*[?!]?$/u;

export function lookupIn(text: string): Lookup | null {
  if (text.length > MAX_LETTERS) return null;
  const query = text.trim().replaceAll(QUOTES, "").replace(KEYWORD, "");
  if (query === "" || /\s/.test(query)) return null;
  const [, path = query, line] = PLACE.exec(query) ?? [];
  const names = query.replace(/\(.*\)$/, "").split(BETWEEN);
  return {
    path,
    line: line === undefined ? null : Number(line),
    names: names.every((name) => NAME.test(name)) ? names : [],
  };
}

/** Puts the definition that is meant first, then others with the same name; within each group the order stays. */
export function foundByName(placed: readonly Placed[], lookup: Lookup): readonly Placed[] {
  const place = placeIn(placed, lookup);
  const ranks = new Map(placed.map(({ chunk }) => [chunk, chunk === place ? 2 : rankOf(chunk, lookup)]));
  const having = (rank: number): readonly Placed[] => placed.filter(({ chunk }) => ranks.get(chunk) === rank);
  const [meant, called, others] = [asWritten(having(2)), having(1), having(0)];
  if (others.length === placed.length) return placed;
  // Each group gets a third of the score range, so that scores still reflect the order.
  return [meant, called, others].flatMap((each, after) =>
    each.map(({ chunk, score }) => ({ chunk, score: (2 - after + score) / 3 })),
  );
}

/** Within a file, the first chunk gets the best score: a class begins there. */
function asWritten(placed: readonly Placed[]): readonly Placed[] {
  const chunks = placed.map(({ chunk }) => chunk).toSorted((a, b) => a.start - b.start);
  const byPath = Map.groupBy(chunks, ({ path }) => path);
  return placed.map(({ chunk, score }) => ({ chunk: byPath.get(chunk.path)?.shift() ?? chunk, score }));
}

/** The first chunk of a named file, or the one nearest to the requested line. */
function placeIn(placed: readonly Placed[], { path, line }: Lookup): Chunk | undefined {
  const away = ({ start, end }: Chunk): number =>
    line === null ? start : Math.max(0, start - line, line - end);
  return placed
    .map(({ chunk }) => chunk)
    .filter((chunk) => pathRank(chunk.path, path) > 0)
    .toSorted((a, b) => pathRank(b.path, path) - pathRank(a.path, path) || away(a) - away(b))[0];
}

/** 3 for the path itself, 2 for the end of a path, 1 for the end in other letter case. */
function pathRank(path: string, query: string): 0 | 1 | 2 | 3 {
  if (path === query) return 3;
  if (path.endsWith(`/${query}`)) return 2;
  return `/${path}`.toLowerCase().endsWith(`/${query}`.toLowerCase()) ? 1 : 0;
}

function rankOf({ path, symbol, kind }: Chunk, lookup: Lookup): 0 | 1 | 2 {
  if (lookup.line === null && pathRank(path, lookup.path) > 1) return 1;
  if (lookup.names.length === 0 || symbol === null || kind === "section") return 0;
  const { folder, name } = namedBy(path);
  const around = [...folder.split("/"), name];
  const ranks = symbol.split(", ").map((each) => nameRank([...around, ...each.split(BETWEEN)], lookup.names));
  return Math.max(...ranks) as 0 | 1 | 2;
}

/** Compares the full name of a definition, including folders and file, with the name in the query. */
function nameRank(whole: readonly string[], query: readonly string[]): 0 | 1 | 2 {
  if (hasNamesInOrder(whole, query)) return 2;
  const low = query.map((name) => name.toLowerCase());
  const lowWhole = whole.map((name) => name.toLowerCase());
  if (lowWhole.at(-1) !== low.at(-1)) return 0;
  // A query of several names in lower case ignores letter case.
  return query.length > 1 && low.join() === query.join() && hasNamesInOrder(lowWhole, low) ? 2 : 1;
}

/** Whether the last names are equal and the earlier ones occur in this order, possibly with others in between. */
function hasNamesInOrder(whole: readonly string[], query: readonly string[]): boolean {
  let met = 0;
  for (const name of whole) if (name === query[met]) met += 1;
  return met === query.length && whole.at(-1) === query.at(-1);
}

/** Names that say nothing: such a file is named after its folder. */
const NAMELESS = new Set(["index", "mod", "__init__", "main", "lib", "init"]);

/** The folder of a file, and the file's name without its extension. */
export function namedBy(path: string): { readonly folder: string; readonly name: string } {
  const cut = path.lastIndexOf("/");
  const folder = path.slice(0, Math.max(0, cut));
  const name = path.slice(cut + 1).replace(/(.)\.[^.]*$/, "$1");
  return {
    folder,
    name: NAMELESS.has(name) && folder !== "" ? lastName(folder) : name,
  };
}

export interface Placed {
  readonly chunk: Chunk;
  readonly score: number;
}

const IDENTIFIER = /[\p{L}_$][\p{L}\p{N}_$]*/gu;

/**
 * Gives a file's best score to the chunk that defines an identifier in the query, else to any chunk but imports, else
 * to the better one. The positions of files do not change.
 */
export function bestRegions(placed: readonly Placed[], text: string): readonly Placed[] {
  const query = new Set(text.match(IDENTIFIER));
  const byPath = Map.groupBy(placed, ({ chunk }) => chunk.path);
  return [...byPath.values()].flatMap((ofFile) => {
    const ranks = new Map(ofFile.map(({ chunk }) => [chunk, fitness(chunk, query)]));
    const chunks = ofFile
      .map(({ chunk }) => chunk)
      .toSorted((a, b) => (ranks.get(b) ?? 0) - (ranks.get(a) ?? 0));
    return ofFile.map(({ score }, place) => ({ chunk: chunks[place] as Chunk, score }));
  });
}

function fitness(chunk: Chunk, query: ReadonlySet<string>): number {
  if (chunk.kind === "imports") return 0;
  return namesOf(chunk).some((name) => query.has(name)) ? 2 : 1;
}

/** Names of more than one word: `Cache` may just begin a sentence. */
const namesOf = ({ symbol }: Chunk): readonly string[] =>
  (symbol ?? "")
    .split(/, |\.|::|#/)
    .filter((name) => /[\p{Ll}\p{N}]\p{Lu}|[\p{L}\p{N}]_[\p{L}\p{N}]/u.test(name));
