import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { bytesOfText } from "../../core/byte-text.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { parentOf } from "./entry.ts";
import { hostPath, liesAt } from "./host-path.ts";

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** The folder that a path lies in, held open: what is done in it is done there, whatever is put in its place. */
export class Ground implements Disposable {
  readonly #descriptor: number;
  readonly #at: string | Buffer;

  constructor(root: string, folder: string) {
    const whole = hostPath(root, folder);
    this.#descriptor = openSync(whole, FOLDER);
    if (!liesAt(this.#descriptor, whole)) {
      closeSync(this.#descriptor);
      throw new HarnessError(EXIT.failed, `${folder}: a link was put on the way to it`, "harness undo");
    }
    // Without this file system the system has no path for an open folder; nobody else works in it meanwhile.
    this.#at = process.platform === "linux" ? `/proc/self/fd/${this.#descriptor}` : whole;
  }

  at(name: string): string | Buffer {
    if (typeof this.#at === "string") return hostPath(this.#at, name);
    return Buffer.concat([this.#at, Buffer.from("/"), bytesOfText(name)]);
  }

  get mode(): number {
    return fstatSync(this.#descriptor).mode & 0o7777;
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}

export const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** Does something at a path without following a link to it or at it. */
export function onGround<T>(root: string, path: string, work: (at: string | Buffer) => T): T {
  using ground = new Ground(root, parentOf(path));
  return work(ground.at(nameOf(path)));
}
