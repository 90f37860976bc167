import { readdir } from "node:fs/promises";
import path from "node:path";
import { textOfBytes } from "../../core/raw-data.ts";
import { liesIn, outermost } from "./protected-mounts.ts";
import { fold, protectedName } from "../../core/file-names.ts";
import type { Protection } from "./scan.ts";
import { look } from "./solid.ts";
import { walk } from "./protected-walk.ts";

/** A cheap check after each call: protected and watched names at the workspace's top that were not there before. */
export async function findPlanted(root: string, protection: Protection): Promise<readonly string[]> {
  const names = (await readdir(root, { encoding: "buffer" })).map(textOfBytes);
  const top = names
    .filter((name) => protectedName(name, true) !== undefined)
    .map((name) => path.join(root, name));
  // Names that resemble no name in the listing are not looked up one by one.
  const near = new Set(names.map(fold));
  const named = protection.absent.filter(
    (file) => path.dirname(file) !== root || near.has(fold(path.basename(file))),
  );
  const made = await Promise.all(named.map(async (file) => ((await exists(file)) ? file : "")));
  const repository = isRepository(root, protection) ? [] : headsOf(root, names);
  return onlyNew([...top, ...made.filter((file) => file !== ""), ...repository], protection);
}

const isRepository = (root: string, { readOnly }: Protection): boolean =>
  readOnly.some((file) => path.dirname(file) === root && path.basename(file) === ".git");

const isHead = (name: string): boolean => name.toLowerCase() === "head";

/**
 * What makes git take the workspace itself for a repository, settings included. The workspace was none when the box
 * began, because such a folder is refused. Without its HEAD it is none again.
 */
function headsOf(root: string, names: readonly string[]): readonly string[] {
  const lower = new Set(names.map((name) => name.toLowerCase()));
  if (!lower.has("commondir") && !(lower.has("objects") && lower.has("refs"))) return [];
  return names.filter(isHead).map((name) => path.join(root, name));
}

const exists = async (file: string): Promise<boolean> =>
  (await look(file).catch(() => undefined)) !== undefined;

/** A path through a link or below another planted path needs no move of its own. */
const onlyNew = (found: readonly string[], { readOnly }: Protection): readonly string[] => {
  const old = new Set(readOnly);
  return outermost(found.filter((file) => !old.has(file) && !liesIn(file, old))).toSorted();
};

export interface PlantedFindings {
  readonly planted: readonly string[];
  readonly warnings: readonly string[];
  /** What could not be searched, and why; empty if all of the tree was searched. */
  readonly unseen: readonly string[];
}

/** For the end of a run: the whole tree, nested repositories included; `opens`: also folders locked meanwhile. */
export async function findAllPlanted(
  root: string,
  protection: Protection,
  opens = true,
): Promise<PlantedFindings> {
  const top = await look(root);
  const walked = await walk(root, { opens, ...(top === undefined ? {} : { user: top }) });
  // Runs after that walk, which unlocks folders.
  const near = await findPlanted(root, protection);
  const warnings: string[] = [];
  const moved = near.some((file) => path.dirname(file) === root && isHead(path.basename(file)));
  if (!isRepository(root, protection) && walked.bare && !moved)
    warnings.push(`${root} now looks like a git repository itself (config, hooks): do not run git in it`);
  return { planted: onlyNew([...near, ...walked.found], protection), warnings, unseen: walked.unseen };
}
