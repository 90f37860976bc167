import { cp, lchown, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { packageRoot } from "../package-root.ts";

/** Works on a copy of the example repository, owned by an ordinary user even where harness runs as root. */
export async function inExampleCopy<T>(work: (workspace: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), "harness-demo-")).catch(noCopy);
  try {
    await fill(folder).catch(noCopy);
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const NOBODY = 65_534;

async function fill(folder: string): Promise<void> {
  await cp(path.join(packageRoot, "examples", "broken-sum"), folder, { recursive: true });
  if (process.getuid?.() !== 0) return;
  for (const name of ["", ...(await readdir(folder))]) await lchown(path.join(folder, name), NOBODY, NOBODY);
}

function noCopy(thrown: unknown): never {
  const message = `the demo's copy could not be made in ${tmpdir()}: ${reasonOf(thrown)}`;
  throw new HarnessError(EXIT.failed, message, "TMPDIR=/a/folder/with/space harness demo", thrown);
}
