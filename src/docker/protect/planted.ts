import { readdir } from "node:fs/promises";
import path from "node:path";
import { textOfBytes } from "../../core/byte-text.ts";
import { within } from "./mounts.ts";
import { fold, protectedName } from "../../core/protected-names.ts";
import type { Protection } from "./scan.ts";
import { look } from "./solid.ts";
import { isBare, walk } from "./walk.ts";

/** Cheap, for after each call: what is protected at the top of the workspace, or watched for, and was not there. */
export async function findPlanted(root: string, protection: Protection): Promise<readonly string[]> {
  const names = (await readdir(root, { encoding: "buffer" })).map(textOfBytes);
  const top = names
    .filter((name) => protectedName(name, true) !== undefined)
    .map((name) => path.join(root, name));
  // What no name in the listing comes near is not looked for one by one.
  const near = new Set(names.map(fold));
  const named = protection.absent.filter(
    (file) => path.dirname(file) !== root || near.has(fold(path.basename(file))),
  );
  const made = await Promise.all(named.map(async (file) => ((await exists(file)) ? file : "")));
  return fresh([...top, ...made.filter((file) => file !== "")], protection);
}

const exists = async (file: string): Promise<boolean> =>
  (await look(file).catch(() => undefined)) !== undefined;

/** A path through a link or below another planted one needs no move of its own. */
function fresh(found: readonly string[], { readOnly }: Protection): readonly string[] {
  const planted = [...new Set(found)].filter((file) => !readOnly.some((old) => within(old, file)));
  return planted.filter((file) => !planted.some((other) => other !== file && within(other, file))).toSorted();
}

export interface Replanted {
  readonly planted: readonly string[];
  readonly warnings: readonly string[];
  /** Whether the tree was searched to its end, then and now. */
  readonly complete: boolean;
}

/**
 * For the end of a run: the whole tree, nested repositories included. When the first search was cut by a bound,
 * only what `findPlanted` sees counts, since the rest may have been there before; the warning says so.
 */
export async function findAllPlanted(root: string, protection: Protection): Promise<Replanted> {
  const near = await findPlanted(root, protection);
  const walked = await walk(root);
  const warnings = [...walked.warnings];
  const repository = protection.readOnly.some(
    (file) => path.dirname(file) === root && path.basename(file) === ".git",
  );
  if (!repository && (await isBare(root)))
    warnings.push(`${root} now looks like a git repository itself (HEAD, objects, refs): run no git in it`);
  if (!protection.complete) {
    warnings.push(
      `${root} was too large to search at the start: new nested repositories are not told from old ones`,
    );
    return { planted: near, warnings, complete: false };
  }
  return { planted: fresh([...near, ...walked.found], protection), warnings, complete: walked.complete };
}
