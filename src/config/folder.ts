import { mkdir } from "node:fs/promises";
import path from "node:path";
import { errorCode } from "../core/errors.ts";

/** A private folder with those above it. Node's own recursive mkdir never ends below /proc. */
export async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 });
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code === "EEXIST") return;
    const parent = path.dirname(folder);
    if (code !== "ENOENT" || parent === folder) throw thrown;
    await makeFolder(parent);
    await mkdir(folder, { mode: 0o700 });
  }
}
