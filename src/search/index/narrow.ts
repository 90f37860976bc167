import type { CatalogFile } from "../catalog/rows.ts";
import { type Found, isSameStamp, isSettled, type Listing, type RuleFile } from "../read/found.ts";
import { sifted } from "../read/listing.ts";
import { entriesOfFolders } from "../read/part.ts";
import { folderOf, isRuleFile, Sieve } from "../read/sieve.ts";
import { type ChangedFolders, lookAt } from "./look.ts";
import type { UpdateParts } from "./parts.ts";

/** What an update has before it: a listing, and what the catalog knows of the same files. */
export interface Seen {
  readonly listing: Listing;
  readonly known: ReadonlyMap<string, CatalogFile>;
}

/** With more of them the whole is listed: it takes hardly longer then. */
const MOST_FOLDERS = 40;

/**
 * The folders in which a look from outside has found changes, as the box lists them, and nothing of the others: those
 * are as the catalog has them. Undefined where only the whole can tell: an update did not end, the rules of what is left
 * out have changed or are young, too much has changed, the box shows another thing than the host.
 */
export async function seenInPart(
  parts: UpdateParts,
  ruleFiles: readonly RuleFile[],
  signal: AbortSignal,
): Promise<Seen | undefined> {
  const { catalog, store, workspace, rules, largest, version, knownBy = "stamps" } = parts;
  const at = Date.now();
  const { whole, nameless } = catalog.facts();
  if (!whole || nameless > 0 || knownBy !== "stamps") return undefined;
  if (!ruleFiles.every(({ stamp }) => isSettled(stamp, at))) return undefined;
  const files = catalog.stamps(version);
  const request = { workspace, files, ruleFiles, rules, largest, most: MOST_FOLDERS, signal };
  // A server counts while this side looks.
  const [look, stored] = await Promise.all([lookAt(request), store.fileCount(signal)]);
  if (look.kind === "other" || look.nameless || stored !== catalog.stored()) return undefined;
  const sieve = new Sieve(rules, new Map(ruleFiles.map(({ path, text }) => [path, text])), largest);
  const change = await changeIn(parts, { look, sieve, ruleFiles }, signal);
  if (change === undefined) return undefined;
  const { found, scope } = change;
  const listing = await sifted(found, { sieve, folders: look.folders }, signal);
  const inScope = scope.size === 0 ? [] : [...files.keys()].filter((path) => scope.has(folderOf(path)));
  return { listing: { ...listing, rules: ruleFiles, nameless: 0, at }, known: catalog.filesAt(inScope) };
}

interface Looked {
  readonly look: ChangedFolders;
  readonly sieve: Sieve;
  readonly ruleFiles: readonly RuleFile[];
}

interface Change {
  /** In the changed folders, and in folders that are new. */
  readonly found: readonly Found[];
  /** Folders whose files are to be as they were found, those of them that are gone too. */
  readonly scope: ReadonlySet<string>;
}

async function changeIn(
  { box }: UpdateParts,
  { look, sieve, ruleFiles }: Looked,
  signal: AbortSignal,
): Promise<Change | undefined> {
  const { folders, grown } = look;
  if (folders.size === 0) return { found: [], scope: folders };
  // Those above them too: a link in the place of one would lead elsewhere.
  const asked = withAbove(folders);
  const level = await entriesOfFolders(box, [...asked], { deep: false, signal });
  const there = new Map(level?.map((found) => [found.path, found]));
  if (level === undefined || !isAsTold(look, asked, there) || !areSame(ruleFiles, asked, there))
    return undefined;
  const added = level.filter(
    ({ path, kind }) =>
      kind === "folder" && grown.has(folderOf(path)) && !look.known.has(path) && sieve.enters(path),
  );
  const below = await entriesOfFolders(
    box,
    added.map(({ path }) => path),
    { deep: true, signal },
  );
  if (below === undefined || below.some(({ path }) => isRuleFile(path))) return undefined;
  return { found: [...level, ...below], scope: new Set([...folders, ...goneFrom(look)]) };
}

/** Whether box and host show the same folders in these, of those that the catalog knows. */
function isAsTold(
  { known, visited }: ChangedFolders,
  asked: ReadonlySet<string>,
  there: ReadonlyMap<string, Found>,
): boolean {
  for (const folder of known) {
    if (folder === "" || !asked.has(folderOf(folder))) continue;
    if (visited.has(folder) !== (there.get(folder)?.kind === "folder")) return false;
  }
  return true;
}

/** Whether all that says in these what is left out is as it was read. */
function areSame(
  ruleFiles: readonly RuleFile[],
  asked: ReadonlySet<string>,
  there: ReadonlyMap<string, Found>,
): boolean {
  const known = new Map(
    ruleFiles.filter(({ path }) => asked.has(folderOf(path))).map((each) => [each.path, each]),
  );
  const found = [...there.values()].filter(({ path, kind }) => isRuleFile(path) && kind !== "folder");
  return (
    found.length === known.size &&
    found.every(({ path, kind, stamp }) => {
      const before = known.get(path);
      return before !== undefined && kind === "file" && isSameStamp(before.stamp, stamp);
    })
  );
}

/** Known folders that nobody could look into: the one above them shows why. */
const goneFrom = ({ known, visited }: ChangedFolders): readonly string[] =>
  [...known].filter((folder) => !visited.has(folder));

function withAbove(folders: ReadonlySet<string>): ReadonlySet<string> {
  const all = new Set([""]);
  for (const folder of folders) for (let at = folder; !all.has(at); at = folderOf(at)) all.add(at);
  return all;
}
