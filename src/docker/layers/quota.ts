import { lstat, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { formatSize } from "../../core/bounds.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { allLayers, type Found } from "./record.ts";

/** What all layers and copies of a state folder may take. */
const QUOTA_BYTES = 20 * 2 ** 30;
/** From here on it is said. */
const SAID = 0.8;
const NAMED = 3;

export interface Room {
  readonly warn: (text: string) => void;
  /** In bytes; the usual one when left out. */
  readonly quota?: number;
}

interface Taken {
  readonly session: string;
  readonly bytes: number;
}

/**
 * Before one more layer is made. All that is kept is a person's to apply or to give up, so nothing is taken away: when
 * there is no room, no new layer begins, and those that there are go on.
 */
export async function refuseWithoutRoom(
  stateDir: string,
  { warn, quota = QUOTA_BYTES }: Room,
): Promise<void> {
  const kept = (await allLayers(stateDir)).filter(({ state }) => state === "kept");
  const all = await Promise.all(kept.map(takenBy));
  const bytes = all.reduce((sum, each) => sum + each.bytes, 0);
  if (bytes <= quota * SAID) return;
  const largest = all.toSorted((a, b) => b.bytes - a.bytes).slice(0, NAMED);
  const named = largest.map((each) => `${each.session} (${formatSize(each.bytes)})`).join(", ");
  const said = `what sessions have changed and nobody has applied takes ${formatSize(bytes)} of ${formatSize(quota)}: ${named}`;
  if (bytes <= quota) return warn(said);
  const { session = "ID" } = largest[0] ?? {};
  throw new HarnessError(
    EXIT.sandbox,
    `${said}; there is no room for another`,
    `harness apply ${session}   (or give it up: harness sessions rm ${session})`,
  );
}

/** As large as a copy was when it was made: only its engine sees it afterwards. */
export const noteBytes = (folder: string, bytes: number): Promise<void> =>
  writeFile(path.join(folder, "bytes"), String(bytes), { mode: 0o600 });

async function takenBy({ folder, volume }: Found): Promise<Taken> {
  const session = path.basename(folder);
  if (volume === null) return { session, bytes: await bytesIn(path.join(folder, "upper")) };
  const noted = Number(await readFile(path.join(folder, "bytes"), "utf8").catch(() => "0"));
  return { session, bytes: Number.isFinite(noted) ? noted : 0 };
}

const BLOCK = 512;
const SLASH = Buffer.from("/");

/** On the disk. What is shut to us, or goes meanwhile, is not counted. */
async function bytesIn(folder: string | Buffer): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true, encoding: "buffer" }).catch(() => []);
  let bytes = 0;
  for (const entry of entries) {
    const at = Buffer.concat([Buffer.from(folder), SLASH, entry.name]);
    const stats = await lstat(at).catch(() => undefined);
    bytes += (stats?.blocks ?? 0) * BLOCK;
    if (entry.isDirectory()) bytes += await bytesIn(at);
  }
  return bytes;
}
