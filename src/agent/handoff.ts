import { bytesOfText, textOfBytes } from "../core/byte-text.ts";
import type { EventBody } from "../core/events.ts";
import type { Box, Changes } from "../core/ports.ts";
import { isDependencies } from "../core/protected-names.ts";
import { type ChangedPath, handoffWithin } from "../policy/handoff/handoff.ts";

/** What a run has changed that the host would later run or obey, as far as the box can tell. */

const LIMIT_MS = 20_000;
/** Links that are looked at, and bytes of their paths; one beyond these counts as leading out. */
const MOST = 20_000;
const MOST_BYTES = 4 * 2 ** 20;
/** Characters of JSON that are told of each tier. */
const TOLD = 2 ** 18;

/** For each path that comes in: where a link leads, the path. */
const LOOK = String.raw`xargs -0 -r sh -c 'exec find "$@" -maxdepth 0 -printf "%l\0%p\0"' find`;

export type ToldHandoff = Pick<
  Extract<EventBody, { readonly type: "run.finished" }>,
  "handoff" | "handoff_left_out"
>;

export async function handoffIn(box: Box, { all }: Changes, signal: AbortSignal): Promise<ToldHandoff> {
  const targets = await look(box, linksIn(all), signal);
  const changed = {
    *[Symbol.iterator](): Generator<ChangedPath> {
      for (const { what, kind, mode, path } of all) {
        const more = kind === "link" ? { target: targetOf(path, targets) } : { mode };
        // What it was before is not known here: only what is new is told as new.
        yield { path, what, kind, ...more, ...(what === "added" ? { oldMode: 0 } : {}) };
      }
    },
  };
  const { handoff, left } = handoffWithin(changed, box.workspace, TOLD);
  return left.dangerous + left.look === 0 ? { handoff } : { handoff, handoff_left_out: left };
}

const isLookedAt = (path: string): boolean => !path.split("/").some(isDependencies);

const targetOf = (path: string, targets: ReadonlyMap<string, string>): string | null | undefined =>
  isLookedAt(path) ? (targets.get(path) ?? null) : undefined;

function linksIn(all: Changes["all"]): readonly string[] {
  const links: string[] = [];
  let room = MOST_BYTES;
  for (const { what, kind, path } of all) {
    if (kind !== "link" || what === "deleted" || !isLookedAt(path)) continue;
    room -= path.length;
    if (room < 0 || links.length === MOST) break;
    links.push(path);
  }
  return links;
}

async function look(
  box: Box,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  if (paths.length === 0) return new Map();
  const words = ["sh", "-c", LOOK];
  const keep = { head: 32 * 2 ** 20, tail: 0 };
  const { stdout } = await box.exec({ words, timeoutMs: LIMIT_MS, keep, input: given(paths) }, signal);
  const fields = textOfBytes(stdout.head).split("\0");
  const targets = new Map<string, string>();
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [target = "", path = ""] = fields.slice(at, at + 2);
    targets.set(path.slice("./".length), target);
  }
  return targets;
}

async function* given(paths: readonly string[]): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytesOfText(paths.map((path) => `./${path}\0`).join("")));
}
