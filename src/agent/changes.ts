import { bytesOfText, textOfBytes } from "../core/byte-text.ts";
import { listed } from "../core/changes.ts";
import type { RunChanges } from "../core/events.ts";
import type { Box, Changes } from "../core/ports.ts";

/** What a run has changed in the workspace, for people: what the ignore rules cover is counted, not listed. */

export const NO_CHANGES: RunChanges = { added: [], modified: [], deleted: [], ignored: 0 };

const LIMIT_MS = 20_000;
/** Bytes of paths that are asked about; those behind them count as not ignored. */
const ASKED = 48 * 2 ** 20;
const PIECE = 64 * 1024;

/**
 * Asks a git of the box's own about the paths: an empty repository elsewhere reads the ignore files of the workspace,
 * whether that is a repository or not, and obeys no configuration of it. What a box's user has for all repositories
 * was written by the commands of this run, and does not count.
 */
const ASK = `d=$(mktemp -d) && git init -q --bare --template= "$d" && \
GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null git -c core.excludesFile=/dev/null --git-dir="$d" --work-tree=. \
check-ignore -z --no-index --stdin; code=$?; rm -rf "$d"; exit $code`;

export async function changesIn(box: Box, changes: Changes, signal: AbortSignal): Promise<RunChanges> {
  const { all, incomplete } = changes;
  const ignored = await ignoredAmong(box, all, signal);
  if (ignored.size > 0) await changes.dropTracked(ignored);
  const lists = listed(all, (path) => ignored.has(path));
  return { ...lists, ignored: ignored.size, ...(incomplete ? { incomplete } : {}) };
}

/** None where git cannot tell: then all are listed. */
async function ignoredAmong(box: Box, all: Changes["all"], signal: AbortSignal): Promise<Set<string>> {
  const found = new Set<string>();
  if (!some(all)) return found;
  const names = new Names((name) => found.add(name));
  const { exit_code } = await box.exec(
    {
      words: ["bash", "-c", ASK],
      timeoutMs: LIMIT_MS,
      // All of it is taken as it comes, and none is kept.
      keep: { head: 2 * ASKED, tail: 0 },
      input: asked(all),
      onOutput: (stream, bytes) => (stream === "stdout" ? names.push(bytes) : undefined),
    },
    signal,
  );
  // 1: it covers none of them.
  return exit_code === 0 ? found : new Set();
}

function some(all: Changes["all"]): boolean {
  for (const _ of all) return true;
  return false;
}

/** Rules that were changed themselves are shown, whatever they say; of a repository's own files they say nothing. */
const isShown = (path: string): boolean => /(?:^|\/)(?:\.gitignore$|\.git(?:\/|$))/i.test(path);

async function* asked(all: Changes["all"]): AsyncGenerator<Uint8Array> {
  let piece: Buffer[] = [];
  let size = 0;
  let room = ASKED;
  for (const { path } of all) {
    if (isShown(path)) continue;
    const name = bytesOfText(`${path}\0`);
    room -= name.length;
    if (room < 0) break;
    piece.push(name);
    size += name.length;
    if (size < PIECE) continue;
    yield await Promise.resolve(Buffer.concat(piece));
    [piece, size] = [[], 0];
  }
  if (piece.length > 0) yield Buffer.concat(piece);
}

/** Names with a NUL behind each, in pieces. */
class Names {
  readonly #take: (name: string) => void;
  #begun: Buffer[] = [];

  constructor(take: (name: string) => void) {
    this.#take = take;
  }

  push(bytes: Uint8Array): void {
    let from = 0;
    for (let end = bytes.indexOf(0); end !== -1; end = bytes.indexOf(0, from)) {
      this.#take(textOfBytes(Buffer.concat([...this.#begun, bytes.subarray(from, end)])));
      this.#begun = [];
      from = end + 1;
    }
    if (from < bytes.length) this.#begun.push(Buffer.from(bytes.subarray(from)));
  }
}
