import { readlinkSync, realpathSync } from "node:fs";
import { bytesOfText } from "../../core/byte-text.ts";

const SLASH = Buffer.from("/");

/** A path of a workspace as the system takes it. Bytes only where a name is no text: text is much the faster. */
export function hostPath(root: string, path: string): string | Buffer {
  const whole = path === "" ? root : `${root}/${path}`;
  return whole.isWellFormed() ? whole : bytesOfText(whole);
}

/** Longer ones the system does not take. */
const LONGEST = 4000;

export const tooLong = (root: string, path: string): boolean =>
  (root.length + path.length) * 3 > LONGEST && bytesOfText(root).length + bytesOfText(path).length > LONGEST;

/**
 * Whether what was opened lies where it was looked for, with no link on the way there: a folder may have been put in
 * place of another between two looks.
 */
export function liesAt(descriptor: number, whole: string | Buffer): boolean {
  const wanted = typeof whole === "string" ? Buffer.from(whole) : whole;
  return reallyAt(descriptor, wanted).equals(wanted);
}

function reallyAt(descriptor: number, wanted: Buffer): Buffer {
  if (process.platform === "linux")
    return readlinkSync(`/proc/self/fd/${descriptor}`, { encoding: "buffer" });
  const slash = wanted.lastIndexOf(SLASH);
  const parent = realpathSync(wanted.subarray(0, Math.max(slash, 1)), { encoding: "buffer" });
  return Buffer.concat([parent, wanted.subarray(slash)]);
}
