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
import { type TarEntry, untar } from "../../core/untar.ts";

const NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const SLASH = Buffer.from("/");

/**
 * Makes what an archive holds below its one top folder in a folder that is empty. Nothing is made behind a link or above
 * the folder. Rights and times are kept, owners are not; what is neither file, folder nor link is left out.
 */
export async function unpack(archive: AsyncIterable<Buffer>, folder: string): Promise<void> {
  using target = new Target(folder);
  for await (const each of untar(archive)) {
    if (Buffer.isBuffer(each)) target.write(each);
    else target.begin(each);
  }
  target.settle();
}

class Target implements Disposable {
  readonly #folder: Buffer;
  readonly #made = new Set([""]);
  readonly #rights: (readonly [at: Buffer, entry: TarEntry])[] = [];
  #open: number | undefined;

  constructor(folder: string) {
    this.#folder = Buffer.from(folder);
  }

  begin(entry: TarEntry): void {
    this[Symbol.dispose]();
    const path = belowTop(entry.name);
    if (path.length === 0) return;
    const at = this.#at(path);
    if (entry.type === "file") this.#open = openSync(at, NEW, 0o600);
    else if (entry.type === "folder") {
      mkdirSync(at, { mode: 0o700 });
      this.#made.add(path.toString("latin1"));
    } else if (entry.type === "link") symlinkSync(entry.target, at);
    else if (entry.type === "same") linkSync(this.#at(belowTop(entry.target)), at);
    if (entry.type === "file" || entry.type === "folder") this.#rights.push([at, entry]);
  }

  write(content: Buffer): void {
    const descriptor = this.#open;
    if (descriptor === undefined) return;
    let at = 0;
    while (at < content.length) at += writeSync(descriptor, content, at);
  }

  /** Rights come last: they may shut a folder. */
  settle(): void {
    this[Symbol.dispose]();
    for (const [at, { mode, modified }] of this.#rights.toReversed()) {
      utimesSync(at, modified, modified);
      chmodSync(at, mode);
    }
  }

  [Symbol.dispose](): void {
    if (this.#open !== undefined) closeSync(this.#open);
    this.#open = undefined;
  }

  #at(path: Buffer): Buffer {
    if (!this.#made.has(parentOf(path)))
      throw new Error(`the archive has no folder for ${path.toString("latin1")}`);
    return Buffer.concat([this.#folder, SLASH, path]);
  }
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
