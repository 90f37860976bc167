import { realpath, stat } from "node:fs/promises";
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
