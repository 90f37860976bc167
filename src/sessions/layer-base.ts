import { readdirSync } from "node:fs";
import { textOfBytes } from "../core/text/bytes.ts";
import { errorCode } from "../core/errors.ts";
import type { CheckpointStore } from "./checkpoints/checkpoint-store.ts";
import type { Tree } from "./checkpoints/entry.ts";
import { filtered, merged } from "./checkpoints/tree-merge.ts";

/** Trees of this name are not steps of a session: they live as long as its layer. */
const nameOf = (session: string): string => `layer-${session}`;

export function baseOf({ trees }: CheckpointStore, session: string): Tree | undefined {
  const name = `${nameOf(session)}.`;
  const numbers = trees
    .ids()
    .filter((id) => id.startsWith(name))
    .map((id) => Number(id.slice(name.length)));
  return numbers.length === 0 ? undefined : trees.load(`${name}${Math.max(...numbers)}`);
}

export const saveBase = (store: CheckpointStore, session: string, base: Tree): void =>
  void store.save(nameOf(session), base);

export const forgetBase = ({ trees }: CheckpointStore, session: string): void =>
  trees.forget(nameOf(session));

/**
 * Called before a box continues over a layer. The box starts from the present workspace, except where the layer already
 * holds something. `upper` is that layer; undefined for a copy, which does not see later changes.
 */
export async function noteBase(
  store: CheckpointStore,
  session: string,
  upper: string | undefined,
): Promise<void> {
  const earlier = baseOf(store, session);
  const held = upper === undefined ? undefined : namesIn(upper);
  if (earlier !== undefined && held === undefined) return;
  const now = await store.look();
  store.remember();
  saveBase(
    store,
    session,
    earlier === undefined || held === undefined ? now : combinedBase(earlier, now, held),
  );
}

/** A folder in the layer may hide what is below it, so everything in such a folder keeps its first known state. */
function combinedBase(earlier: Tree, now: Tree, held: ReadonlySet<string>): Tree {
  const isOld = (path: string): boolean => path === "" || held.has(path.split("/", 1)[0] ?? "");
  return merged(
    filtered(earlier, isOld),
    filtered(now, (path) => !isOld(path)),
  );
}

/** Names at the top level of the layer. */
function namesIn(upper: string): ReadonlySet<string> {
  try {
    return new Set(readdirSync(upper, { encoding: "buffer" }).map(textOfBytes));
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return new Set();
    throw thrown;
  }
}
