import { Buffer } from "node:buffer";
import {
  chmodSync,
  closeSync,
  constants,
  linkSync,
  mkdirSync,
  openSync,
  symlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { type TarEntry, untar } from "./untar.ts";

const NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const SLASH = Buffer.from("/");

/**
 * Makes what an archive holds below its one top folder in a folder that is empty. Nothing is made behind a link or above
 * the folder. Rights and times are kept, owners are not; what is neither file, folder nor link is left out, and counted.
 */
export async function unpack(
  archive: AsyncIterable<Buffer>,
  folder: string,
): Promise<{ readonly odd: number }> {
  const made = new Set([""]);
  const rights: (readonly [at: Buffer, entry: TarEntry])[] = [];
  let odd = 0;
  let open: number | undefined;
  const close = (): void => {
    if (open !== undefined) closeSync(open);
    open = undefined;
  };
  try {
    for await (const each of untar(archive)) {
      if (Buffer.isBuffer(each)) {
        for (let at = 0; open !== undefined && at < each.length;) at += writeSync(open, each, at);
        continue;
      }
      close();
      const path = belowTop(each.name);
      if (path.length === 0) continue;
      if (!made.has(parentOf(path)))
        throw new Error(`the archive has no folder for ${path.toString("latin1")}`);
      const at = Buffer.concat([Buffer.from(folder), SLASH, path]);
      if (each.type === "file") open = openSync(at, NEW, 0o600);
      else if (each.type === "folder") {
        mkdirSync(at, { mode: 0o700 });
        made.add(path.toString("latin1"));
      } else if (each.type === "link") symlinkSync(each.target, at);
      else if (each.type === "same") {
        const other = belowTop(each.target);
        if (!made.has(parentOf(other))) throw new Error("the archive links to what it does not hold");
        linkSync(Buffer.concat([Buffer.from(folder), SLASH, other]), at);
      } else odd += 1;
      if (each.type === "file" || each.type === "folder") rights.push([at, each]);
    }
  } finally {
    close();
  }
  for (const [at, { mode, modified }] of rights.toReversed()) {
    utimesSync(at, modified, modified);
    chmodSync(at, mode);
  }
  return { odd };
}

/** Without the archive's top folder; what would lead out is no path of it. */
function belowTop(name: Buffer): Buffer {
  const names = name.toString("latin1").split("/").slice(1);
  const path = names.filter((each) => each !== "" && each !== ".");
  if (path.includes("..")) throw new Error("the archive leads out of its folder");
  return Buffer.from(path.join("/"), "latin1");
}

function parentOf(path: Buffer): string {
  const slash = path.lastIndexOf(SLASH);
  return slash === -1 ? "" : path.toString("latin1", 0, slash);
}
