import { decodeFields, textIn } from "../runner/fields.ts";
import type { RunnerClient } from "../runner/client.ts";
import { REQUEST } from "../runner/frames.ts";
import { textOfBytes } from "../../core/byte-text.ts";
import type { BoxReport, SeenFile } from "./report.ts";

interface Asking {
  /** Lets commands ask the harness for commits. */
  readonly mayAsk?: boolean;
  /** Mounts that the box is to end without (sandbox/runner/guard.h). */
  readonly guarded?: readonly string[];
}

/** The box's own word: its texts of /proc, and what it sees at these paths. */
export async function askReport(
  client: RunnerClient,
  paths: readonly string[],
  { mayAsk = false, guarded = [] }: Asking = {},
): Promise<BoxReport> {
  const { end } = await client.ask(REQUEST.hello, [
    ...paths.map((path) => ["p", path] as const),
    ...guarded.map((path) => ["w", path] as const),
    ...(mayAsk ? [["g", ""] as const] : []),
  ]);
  const fields = decodeFields(end.payload);
  return {
    status: textIn(fields, "s"),
    mountinfo: textIn(fields, "m"),
    netdev: textIn(fields, "n"),
    route: textIn(fields, "r"),
    rlimits: textIn(fields, "l"),
    hostname: textIn(fields, "h").trim(),
    stats: fields.filter(({ name }) => name === "f").flatMap(({ bytes }) => seenFile(textOfBytes(bytes))),
  };
}

/** `dev:ino:mode:path`; what could not be seen is left out, and so is missed in the comparison. */
function seenFile(text: string): readonly SeenFile[] {
  const match = /^(\d+):(\d+):([0-7]+):([^]*)$/.exec(text);
  if (match === null) return [];
  const [, dev = "", ino = "", mode = "", path = ""] = match;
  return [{ path, dev, ino, mode: Number.parseInt(mode, 8) }];
}
