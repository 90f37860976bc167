import { lastName } from "../../core/file-names.ts";
import { SECRETS } from "./secret-paths.generated.ts";
import { endOfName } from "./system-paths.ts";

interface Row {
  readonly why: string;
  /** The names before the last one, each with its slash; empty for most rows. */
  readonly before: string;
  readonly folder: boolean;
}

const ALL = Object.entries(SECRETS).flatMap(([why, paths]) => paths.map((path) => ({ why, path })));

const BY_NAME: ReadonlyMap<string, readonly Row[]> = Map.groupBy(
  ALL.filter(({ path }) => !path.includes("*")).map(({ why, path }) => {
    const folder = path.endsWith("/");
    const whole = folder ? path.slice(0, -1) : path;
    const start = whole.lastIndexOf("/") + 1;
    return { why, folder, name: whole.slice(start), before: whole.slice(0, start) };
  }),
  ({ name }) => name,
);

const STARTS = ALL.filter(({ path }) => path.endsWith("*")).map(({ path, why }) => ({
  start: path.slice(0, -1),
  why,
}));

/** Keyed by the ending with its dot. */
const ENDS: ReadonlyMap<string, string> = new Map(
  ALL.filter(({ path }) => path.startsWith("*")).map(({ path, why }) => [path.slice(1), why]),
);

const MAX_LENGTH = Math.max(...[...ENDS.keys()].map((end) => end.length));

/** Why a read there may show a password or a key. The path is absolute, resolved and folded. */
export function secretAt(folded: string): string | null {
  const name = lastName(folded);
  return isHarmless(name) ? null : (bySpelling(name) ?? byTable(folded));
}

/** By whole names only: certificates and test keys in system folders are not secret. */
export const namedSecretAt = (folded: string): string | null => byTable(folded);

const EXAMPLES = [".example", ".sample", ".template", ".dist"];

/** Names that say that they hold no secret: public keys and examples of environment files. */
const isHarmless = (name: string): boolean =>
  name.endsWith(".pub") || (name.startsWith(".env.") && EXAMPLES.some((end) => name.endsWith(end)));

function bySpelling(name: string): string | null {
  for (let dot = name.indexOf(".", name.length - MAX_LENGTH); dot !== -1; dot = name.indexOf(".", dot + 1)) {
    const why = ENDS.get(name.slice(dot));
    if (why !== undefined) return why;
  }
  for (const { start, why } of STARTS) if (name.startsWith(start)) return why;
  return null;
}

/** Marks the first characters of the table's names by their codes: most names in paths start with none of them. */
const FIRST = new Uint8Array(128);
for (const name of BY_NAME.keys()) FIRST[name.charCodeAt(0)] = 1;

function byTable(folded: string): string | null {
  for (let start = 1; start <= folded.length;) {
    const end = endOfName(folded, start);
    const rows = FIRST[folded.charCodeAt(start)] === 1 ? BY_NAME.get(folded.slice(start, end)) : undefined;
    const row = rows?.find((each) => (each.folder || end === folded.length) && follows(folded, start, each));
    if (row !== undefined) return row.why;
    start = end + 1;
  }
  return null;
}

const follows = (folded: string, start: number, { before }: Row): boolean =>
  before === "" || folded.slice(0, start).endsWith(`/${before}`);
