import { realpath, stat } from "node:fs/promises";
import type { Settings } from "../config/settings-schema.ts";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";

/** The folder that a run works in, as its sessions name it. `next` is what to type where there is none. */
export async function runWorkspace(folder: string, next = NEXT): Promise<string> {
  const real = await realpath(folder).catch((thrown: unknown) => {
    throw new HarnessError(EXIT.usage, `there is no folder ${folder}: ${reasonOf(thrown)}`, next, thrown);
  });
  if ((await stat(real)).isDirectory()) return real;
  throw new HarnessError(EXIT.usage, `${folder} is no folder`, next);
}

const NEXT = 'harness run --cwd FOLDER "…"';

/** Asked for and not there yet is refused: nothing runs behind weaker walls than it was told to. */
export function refuseUnbuilt({ allow_domains }: Settings): void {
  if (allow_domains.length > 0) throw unbuilt("granted domains");
}

const unbuilt = (what: string): HarnessError =>
  new HarnessError(EXIT.usage, `${what}: not built yet in this version`, "leave it out: CHANGELOG says when");
