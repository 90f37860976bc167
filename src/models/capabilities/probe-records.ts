import { mkdir, readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { replaceFile } from "../../platform/safe-files.ts";

/** What a probe of one model on one server found. */
export interface ProbeRecord {
  /** With its tag, as it was asked for. */
  readonly model: string;
  readonly server: string;
  /** Empty where the server tells none. */
  readonly version: string;
  /** Native calls work. */
  readonly native: boolean;
  /** By the name of the check. */
  readonly checks: Readonly<Record<string, boolean>>;
  /** ISO 8601. */
  readonly at: string;
}

export type ProbeSubject = Pick<ProbeRecord, "model" | "server" | "version">;

const MOST_RECORDS = 500;

const word = z.string().max(1000);
const record = z.object({
  model: word,
  server: word,
  version: word,
  native: z.boolean(),
  checks: z.record(z.string(), z.boolean()),
  at: word,
});
const file = z.object({ version: z.literal(1), probes: z.array(record) });

const placeOf = (stateDir: string): string => path.join(stateDir, "probes.json");

/** Every record; none when the file is missing or no longer readable: a probe can be made again. */
export async function readProbes(stateDir: string): Promise<readonly ProbeRecord[]> {
  try {
    return file.parse(JSON.parse(await readFile(placeOf(stateDir), "utf8"))).probes;
  } catch {
    return [];
  }
}

/** A newer server may read calls in another way, so its version has to be the same. */
export const recordOn = (
  probes: readonly ProbeRecord[],
  { model, server, version }: ProbeSubject,
): ProbeRecord | undefined =>
  probes.findLast((each) => each.model === model && each.server === server && each.version === version);

/** Keeps a record in place of an older one on the same; the file is replaced as a whole or not at all. */
export async function writeProbe(stateDir: string, made: ProbeRecord): Promise<void> {
  const others = (await readProbes(stateDir)).filter((each) => recordOn([each], made) === undefined);
  const probes = [...others, made].slice(-MOST_RECORDS);
  const place = placeOf(stateDir);
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  await replaceFile(place, `${JSON.stringify({ version: 1, probes }, undefined, 2)}\n`, { lasts: "content" });
}
