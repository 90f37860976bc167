import { bytesOfText, textOfBytes } from "../core/byte-text.ts";
import type { Handoff } from "../core/handoff.ts";
import type { Box, Changes } from "../core/ports.ts";
import { isDependencies } from "../core/protected-names.ts";
import { type ChangedPath, handoffOf } from "../policy/handoff/handoff.ts";

/** What a run has changed that the host would later run or obey, as far as the box can tell. */

const LIMIT_MS = 20_000;
/** Changed paths beyond these are judged by their names alone. */
const MOST = 20_000;

/** For each path that comes in: type, rights, where a link leads, the path. */
const LOOK = String.raw`xargs -0 -r sh -c 'exec find "$@" -maxdepth 0 -printf "%y\0%m\0%l\0%p\0"' find`;

export async function handoffIn(
  box: Box,
  { added, modified, deleted }: Changes,
  signal: AbortSignal,
): Promise<readonly Handoff[]> {
  const there = [...added, ...modified];
  const seen = await look(box, there.filter(isLookedAt).slice(0, MOST), signal);
  const changed =
    (what: ChangedPath["what"]) =>
    (path: string): ChangedPath => ({
      path,
      what,
      ...(seen.get(path) ?? { kind: "file" as const }),
      // What it was before is not known here: only what is new is told as new.
      ...(what === "added" ? { oldMode: 0 } : {}),
    });
  const all = [
    ...added.map(changed("added")),
    ...modified.map(changed("modified")),
    ...deleted.map(changed("deleted")),
  ];
  return handoffOf(all, box.workspace);
}

const isLookedAt = (path: string): boolean => !path.split("/").some(isDependencies);

type Seen = Pick<ChangedPath, "kind" | "mode" | "target">;

const KINDS: Readonly<Record<string, ChangedPath["kind"]>> = { f: "file", d: "folder", l: "link" };

async function look(
  box: Box,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Seen>> {
  if (paths.length === 0) return new Map();
  const words = ["sh", "-c", LOOK];
  const keep = { head: 32 * 2 ** 20, tail: 0 };
  const { stdout } = await box.exec({ words, timeoutMs: LIMIT_MS, keep, input: listed(paths) }, signal);
  const fields = textOfBytes(stdout.head).split("\0");
  const seen = new Map<string, Seen>();
  for (let at = 0; at + 3 < fields.length; at += 4) {
    const [type = "", mode = "", target = "", path = ""] = fields.slice(at, at + 4);
    const kind = KINDS[type] ?? "odd";
    const more = kind === "link" ? { target } : { mode: Number.parseInt(mode, 8) };
    seen.set(path.slice("./".length), { kind, ...more });
  }
  return seen;
}

async function* listed(paths: readonly string[]): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytesOfText(paths.map((path) => `./${path}\0`).join("")));
}
