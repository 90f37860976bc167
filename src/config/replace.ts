import { chmod, readlink, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { makeFolder } from "./folder.ts";

/** Writes a file of the user's all or nothing: links and rights stay, a new file is private. */
export async function replaceFile(file: string, text: string): Promise<void> {
  const target = await behindLink(file);
  const temporary = `${target}.${process.pid}.tmp`;
  try {
    await makeFolder(path.dirname(target));
    const mode = await modeOf(target);
    await writeFile(temporary, text, { mode: PRIVATE, flush: true });
    await chmod(temporary, mode);
    await rename(temporary, target);
  } catch (thrown) {
    await rm(temporary, { force: true }).catch(() => undefined);
    const folder = path.dirname(target);
    const look = `ls -ld ${folder} && df -h ${folder}`;
    throw new HarnessError(EXIT.usage, `${target}: cannot be written: ${reasonOf(thrown)}`, look, thrown);
  }
}

const PRIVATE = 0o600;

const modeOf = (file: string): Promise<number> =>
  stat(file).then(
    ({ mode }) => mode & 0o777,
    () => PRIVATE,
  );

/** Where to write so that a link into someone's dotfiles stays one, even when it points at nothing yet. */
async function behindLink(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch {
    const target = await readlink(file).catch(() => undefined);
    return target === undefined ? file : path.resolve(path.dirname(file), target);
  }
}
