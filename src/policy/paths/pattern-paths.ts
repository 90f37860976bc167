import { foldPath, PROTECTED } from "../../core/file-names.ts";
import { resolvePath } from "./normal-path.ts";
import { fits, type NamePattern, readPattern } from "./path-glob.ts";
import { type Op, type PlaceOf, placeOf, type Surroundings } from "./path-place.ts";
import { SECRETS } from "./secret-paths.generated.ts";
import { HOME_STARTUP } from "./startup-paths.generated.ts";

const SPECIAL = /[*?[(]/;

/**
 * `placeOf` for a path with shell patterns. Its location is its last folder without a pattern. It is secret or protected
 * when it aims at such a name: `.e*`, `*.pem`, `id_*`, `.g?t/x`, but not `*` or `*.json`, which merely could match one.
 * Rules of `.harnessignore` are matched against the pattern as written.
 */
export function placeOfPattern(pattern: string, op: Op, around: Surroundings): PlaceOf {
  const at = resolvePath(around.cwd ?? around.workspace, pattern);
  const special = at.search(SPECIAL);
  const literal = placeOf(at, op, around);
  if (special === -1) return literal;
  const folder = at.slice(0, Math.max(1, at.lastIndexOf("/", special)));
  const known = placeOf(folder, op, around);
  const names = foldPath(at.slice(folder.length))
    .split("/")
    .filter((name) => name !== "");
  const place = either(literal, known);
  if (at.includes("(")) return { ...place, kind: "unknown" };
  if (op === "read") return { ...place, secret: place.secret ?? aimedAt(names, SECRET_AIMS) };
  const protects = known.kind === "temp" ? null : aimedAt(names, PROTECTED_AIMS);
  const traps = isHome(folder, around) ? aimedAt(names, HOME_AIMS) : null;
  return { ...place, protected: place.protected ?? protects, trap: place.trap ?? traps };
}

/** Location of the folder, and findings against the folder and the pattern. */
const either = (literal: PlaceOf, folder: PlaceOf): PlaceOf => ({
  path: literal.path,
  kind: folder.kind,
  secret: literal.secret ?? folder.secret,
  protected: literal.protected ?? folder.protected,
  trap: literal.trap ?? folder.trap,
  ignored: literal.ignored || folder.ignored,
});

interface Aim {
  /** One name that the table row is about. */
  readonly name: string;
  readonly why: string;
  /** The end of the row's names; empty where the row gives a whole name or its start. */
  readonly end: string;
  /** The row applies to folders too, so every name of a path is compared. */
  readonly anywhere: boolean;
}

function aim(row: string, why: string, anywhere: boolean): Aim {
  const name = row.replace(/\/$/, "").replace(/\*$/, "").replace(/^\*/, "x");
  return { name, why, end: row.startsWith("*") ? row.slice(1) : "", anywhere };
}

/** A shell pattern matches a leading dot only with a literal dot. */
interface Aims {
  readonly dotted: readonly Aim[];
  readonly plain: readonly Aim[];
}

const aims = (all: readonly Aim[]): Aims => ({
  dotted: all.filter(({ name }) => name.startsWith(".")),
  plain: all.filter(({ name }) => !name.startsWith(".")),
});

const PROTECTED_AIMS = aims(PROTECTED.map(({ name, why }) => aim(name, why, true)));

/** Rows of a single name; for longer ones the folder is known, or there is no name to compare a pattern with. */
const SECRET_AIMS = aims(
  Object.entries(SECRETS).flatMap(([why, rows]) =>
    rows.filter((row) => !row.slice(0, -1).includes("/")).map((row) => aim(row, why, row.endsWith("/"))),
  ),
);

const HOME_AIMS = aims(
  Object.entries(HOME_STARTUP).flatMap(([why, rows]) =>
    rows.filter((row) => !row.includes("/")).map((row) => aim(row, why, true)),
  ),
);

const isHome = (folder: string, { home }: Surroundings): boolean =>
  folder === home || /^\/(?:root|(?:home|Users)\/[^/]*)$/.test(folder);

function aimedAt(names: readonly string[], { dotted, plain }: Aims): string | null {
  for (const [index, name] of names.entries()) {
    if (!SPECIAL.test(name)) continue;
    const last = index === names.length - 1;
    const hit = name.startsWith(".") ? firstDotted(name, dotted, last) : firstPlain(name, plain, last);
    if (hit !== undefined) return hit.why;
  }
  return null;
}

function firstDotted(text: string, aims: readonly Aim[], last: boolean): Aim | undefined {
  const pattern = patternOf(text);
  return aims.find(
    ({ name, anywhere }) => (last || anywhere) && (pattern === undefined || fits(pattern, name, false)),
  );
}

/** The first row that the pattern aims at, by at least two characters of a name's start or three of a name's end. */
function firstPlain(text: string, aims: readonly Aim[], last: boolean): Aim | undefined {
  const start = text.slice(0, text.search(SPECIAL));
  const byEnd = text.replaceAll(/[^a-z0-9.]/g, "").length >= 3;
  if (start.length < 2 && !byEnd) return undefined;
  const pattern = patternOf(text);
  if (pattern === undefined) return undefined;
  return aims.find(
    ({ name, end, anywhere }) =>
      (last || anywhere) &&
      (end === "" ? start.length >= 2 && name.startsWith(start) : byEnd) &&
      fits(pattern, name, false),
  );
}

const patternOf = (text: string): NamePattern | undefined => readPattern(text)?.[0];
