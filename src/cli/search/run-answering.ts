import type { Settings } from "../../config/schema.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { Box, IndexAnswer } from "../../core/ports.ts";
import { claimIndex, type IndexPlace } from "../../search/catalog/workspace.ts";
import { answersIn } from "../../search/index/answer.ts";
import { type Cutting, CuttingHere } from "../../search/index/cutting.ts";
import { HeldIndex } from "../../search/index/held.ts";
import type { IndexMeans, Stamps } from "../../search/index/means.ts";
import { mending } from "../../search/index/mending.ts";
import { isDamaged } from "../../search/index/opened-store.ts";
import { claimLayer, type Layer } from "../../search/index/layer.ts";
import { embeddedOnly, indexMeans, indexRoot } from "../search-seat.ts";
import { SearchVectors } from "./vectors.ts";
import type { RunIndex, RunIndexParts } from "./run-index.ts";

/** How long a call waits for somebody else who writes the same index. */
const PATIENCE_MS = 2000;
/** Of a call's time that is left for the answer itself. */
const ANSWER_MS = 5000;

interface Ground {
  readonly place: IndexPlace;
  readonly means: IndexMeans;
  readonly knownBy: Stamps;
  /** For all calls of a run. */
  readonly kept: Cutting;
}

/**
 * What a box shows as the workspace is what the index of the workspace says only where they are the same files, and
 * nobody can have put other programs into the box. Else the run has an index of its own, begun as a copy.
 */
export function runAnswering(parts: RunIndexParts): RunIndex {
  const layers: { own?: Layer } = {};
  const kept = new CuttingHere();
  const ground = (): Ground => {
    const settings = parts.settings();
    const means = indexMeans(settings, () => undefined);
    const base = claimIndex(indexRoot(), parts.workspace);
    if (isShared(settings)) return { place: base, means, kept, knownBy: "stamps" };
    const { place } = (layers.own ??= claimLayer(base, parts.session));
    return { place, means: embeddedOnly(means), kept, knownBy: "times" };
  };
  return {
    search: async (query, limit, signal) => {
      const stands = ground();
      const { means, place } = stands;
      return mending(means, place, () => asked(parts, stands, { query, limit }, signal));
    },
    [Symbol.asyncDispose]: async () => {
      layers.own?.[Symbol.dispose]();
      await kept[Symbol.asyncDispose]();
    },
  };
}

const isShared = ({ isolation, mode }: Settings): boolean =>
  isolation === "bind" && mode !== "danger-full-access";

interface Asked {
  readonly query: string;
  readonly limit: number;
}

async function asked(
  parts: RunIndexParts,
  ground: Ground,
  { query, limit }: Asked,
  signal: AbortSignal,
): Promise<IndexAnswer> {
  const box = await parts.box();
  const { index, caveat } = await opened(ground, signal);
  await using _ = index;
  const late = AbortSignal.timeout(Math.max(parts.settings().timeout - ANSWER_MS, 1000));
  const { knownBy, kept } = ground;
  const trouble = caveat === "" ? await renewed(index, { box, knownBy, kept, late }, signal) : caveat;
  const wanted = { settings: parts.settings(), origins: parts.origins, note: () => undefined };
  using vectors = new SearchVectors(wanted);
  if (trouble === "") await vectors.embedSome(index, signal);
  const vector = await vectors.of(index, query, signal);
  const hits = await answersIn(index.store, { text: query, vector, limit }, signal);
  return { hits, caveat: trouble };
}

/** To be brought up to date, or as it is where another process does that just now. */
async function opened(
  { means, place }: Ground,
  signal: AbortSignal,
): Promise<{ readonly index: HeldIndex; readonly caveat: string }> {
  try {
    return { index: await HeldIndex.write(means, place, { patienceMs: PATIENCE_MS, signal }), caveat: "" };
  } catch (thrown) {
    signal.throwIfAborted();
    const index = await HeldIndex.read(means, place, signal);
    if (index === undefined || !(thrown instanceof HarnessError)) throw thrown;
    return { index, caveat: `this may be older than the files: ${thrown.message}` };
  }
}

interface Renewing extends Pick<Ground, "knownBy" | "kept"> {
  readonly box: Box;
  readonly late: AbortSignal;
}

/** Why the answer is not of all files; empty when it is. Only the loss of the box, and damage, go further. */
async function renewed(
  index: HeldIndex,
  { box, knownBy, kept, late }: Renewing,
  signal: AbortSignal,
): Promise<string> {
  const now = { done: 0, total: 0 };
  const onProgress = (progress: typeof now): void => void Object.assign(now, progress);
  try {
    await index.update(box, { knownBy, onProgress, kept }, AbortSignal.any([signal, late]));
    return "";
  } catch (thrown) {
    signal.throwIfAborted();
    if (late.aborted)
      return `the index is not whole yet: ${now.done} of ${now.total} changed files were read in the time of this call, and the next one goes on`;
    if (isDamaged(thrown)) throw thrown;
    if (thrown instanceof HarnessError && thrown.exit === EXIT.sandbox) throw thrown;
    return `this may be older than the files, or not of all of them: ${reasonOf(thrown)}`;
  }
}
