import type { RunChanges } from "../core/events.ts";
import type { Box, Changes } from "../core/ports.ts";

/** What a run has changed in the workspace, for people: what the ignore rules cover is counted, not listed. */

export const NO_CHANGES: RunChanges = { added: [], modified: [], deleted: [], ignored: 0 };

const KEEP = { head: 8 * 2 ** 20, tail: 0 };
const LIMIT_MS = 20_000;

/**
 * Asks a git of the box's own about the paths: an empty repository elsewhere reads the ignore files of the workspace,
 * whether that is a repository or not, and obeys no configuration of it.
 */
const ASK = `d=$(mktemp -d) && git init -q --bare "$d" && \
GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null git --git-dir="$d" --work-tree=. check-ignore -z --no-index --stdin; \
code=$?; rm -rf "$d"; exit $code`;

export async function changesIn(
  box: Box,
  { added, modified, deleted }: Changes,
  signal: AbortSignal,
): Promise<RunChanges> {
  const paths = [...added, ...modified, ...deleted];
  if (paths.length === 0) return NO_CHANGES;
  const ignored = await ignoredAmong(box, paths, signal);
  const listed = (list: readonly string[]): readonly string[] => list.filter((path) => !ignored.has(path));
  return {
    added: listed(added),
    modified: listed(modified),
    deleted: listed(deleted),
    ignored: ignored.size,
  };
}

/** None where git cannot tell: then all are listed. */
async function ignoredAmong(
  box: Box,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const { stdout } = await box.exec(
    { words: ["bash", "-c", ASK], timeoutMs: LIMIT_MS, keep: KEEP, input: textOf(paths) },
    signal,
  );
  const known = new Set(paths);
  const said = Buffer.from(stdout.head).toString("utf8").split("\0");
  return new Set(said.filter((path) => known.has(path)));
}

async function* textOf(paths: readonly string[]): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(Buffer.from(`${paths.join("\0")}\0`));
}
