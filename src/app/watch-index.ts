import { setTimeout as sleep } from "node:timers/promises";
import { HarnessError } from "../core/errors.ts";
import { findIndex } from "../search/embedded/catalog-workspace.ts";
import { HeldIndex } from "../search/index/open-index.ts";
import { type Indexed, indexFolder, type Indexing } from "./indexing.ts";
import { indexMeans, indexRoot } from "./search-access.ts";

/** Between two looks; a look that takes long is followed by a longer rest, so that it costs a tenth at most. */
const STEP_MS = 1000;
const REST = 10;
/** After a trouble, such as a run that has the workspace for itself. */
const TROUBLE_MS = 15_000;

/** Keeps an index fresh until it is told to stop: looks at names and times, and reads what has changed. */
export async function watch(
  indexing: Indexing,
  onIndexed: (indexed: Indexed) => void,
  signal: AbortSignal,
): Promise<never> {
  // The folder it was started in may be removed and made anew meanwhile, and no thread starts where there is none.
  process.chdir("/");
  onIndexed(await indexFolder(indexing, signal));
  let told = "";
  for (;;) {
    const began = performance.now();
    try {
      const fresh = await isFresh(indexing, signal);
      await sleep(Math.max(STEP_MS, (performance.now() - began) * REST), undefined, { signal });
      if (fresh) continue;
      onIndexed(await indexFolder({ ...indexing, quiet: true }, signal));
      told = "";
    } catch (thrown) {
      signal.throwIfAborted();
      if (!(thrown instanceof HarnessError)) throw thrown;
      if (told !== thrown.message)
        indexing.note(`not brought up to date, and tried again: ${thrown.message}`);
      told = thrown.message;
      await sleep(TROUBLE_MS, undefined, { signal });
    }
  }
}

async function isFresh({ settings, workspace, note }: Indexing, signal: AbortSignal): Promise<boolean> {
  const place = findIndex(indexRoot(), workspace);
  const held =
    place === undefined ? undefined : await HeldIndex.read(indexMeans(settings, note), place, signal);
  if (held === undefined) return false;
  await using index = held;
  return await index.isFresh(signal);
}
