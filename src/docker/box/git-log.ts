import { textOfBytes } from "../../core/byte-text.ts";
import type { GitEntry } from "../../core/box-log.ts";

/** What git says with `--raw -z --no-renames --no-abbrev`, as far as it was kept. */
export interface RawEntry extends GitEntry {
  /** Of its content. */
  readonly id: string;
}

const HEAD = /^:(\d+) (\d+) ([0-9a-f]+) ([0-9a-f]+) ([A-Z])\d*$/;
const WHATS: Readonly<Record<string, GitEntry["what"]>> = { A: "added", D: "deleted" };

/** `below` comes before each path: where the repository lies in the workspace. */
export function rawEntries(said: Buffer, below: string): readonly RawEntry[] {
  const fields = textOfBytes(said).split("\0");
  const entries: RawEntry[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const found = HEAD.exec((fields[at] ?? "").trim());
    if (found === null) break;
    const [, oldMode = "", mode = "", , id = "", letter = ""] = found;
    entries.push({
      path: below === "" ? (fields[at + 1] ?? "") : `${below}/${fields[at + 1] ?? ""}`,
      what: WHATS[letter] ?? "modified",
      kind: KINDS[mode] ?? "file",
      mode: permissions(mode),
      oldMode: permissions(oldMode),
      id,
    });
  }
  return entries;
}

const KINDS: Readonly<Record<string, GitEntry["kind"]>> = { "120000": "link", "160000": "repository" };

const permissions = (mode: string): number => Number.parseInt(mode, 8) & 0o7777;

/** The contents that `cat-file --batch` gives for these ids, in their order; those that were not whole are left out. */
export function contentsOf(said: Buffer): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (let at = 0; at < said.length;) {
    const end = said.indexOf(0x0a, at);
    const head = /^([0-9a-f]+) blob (\d+)$/.exec(said.subarray(at, Math.max(at, end)).toString("latin1"));
    const [, id = "", size = ""] = head ?? [];
    const to = end + 1 + Number(size);
    if (id === "" || to > said.length) break;
    found.set(id, textOfBytes(said.subarray(end + 1, to)));
    at = to + 1;
  }
  return found;
}
