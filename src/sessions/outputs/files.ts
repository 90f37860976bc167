import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";

/** Files named by the SHA-256 of their content, `<aa>/<sha256>`. They may be read by their owner only. */
export class ContentFiles {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Written aside and renamed: a file under its name is whole, whenever the writer was killed. */
  put(content: Buffer): string {
    const hash = hashOf(content);
    const file = this.#fileOf(hash);
    if (this.get(hash, content.length) !== undefined) return hash;
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    const aside = `${file}.${randomUUID()}`;
    try {
      writeFileSync(aside, content, { mode: 0o600 });
      renameSync(aside, file);
    } catch (thrown) {
      rmSync(aside, { force: true });
      throw thrown;
    }
    return hash;
  }

  /** undefined when it is not there, or is not what it was: a power cut may leave such a file. */
  get(hash: string, bytes: number): Buffer | undefined {
    const file = this.#fileOf(hash);
    if (statSync(file, { throwIfNoEntry: false })?.size !== bytes) return undefined;
    const content = readFileSync(file);
    return hashOf(content) === hash ? content : undefined;
  }

  drop(hash: string): void {
    rmSync(this.#fileOf(hash), { force: true });
  }

  /**
   * Removes what killed writers left; nobody may be in `put` meanwhile. A whole file is left even when nothing names it:
   * it may belong to a database that was set aside.
   */
  sweep(): void {
    for (const folder of listing(this.folder))
      for (const name of listing(path.join(this.folder, folder)))
        if (name.includes(".")) rmSync(path.join(this.folder, folder, name), { force: true });
  }

  #fileOf(hash: string): string {
    return path.join(this.folder, hash.slice(0, 2), hash);
  }
}

const listing = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

const hashOf = (content: Buffer): string => createHash("sha256").update(content).digest("hex");
