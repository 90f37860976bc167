import { chmodSync, closeSync, openSync, statSync } from "node:fs";

/**
 * A file that nobody else reads, made where there is none; its path. SQLite gives its other files the mode of this one.
 * Where something else has that name, nothing is changed of it, and what is thrown says so as the system does: EISDIR.
 */
export function privateFile(file: string): string {
  const there = statSync(file, { throwIfNoEntry: false });
  // One that is there is never opened here: closing it again would free the locks that SQLite has on it.
  if (there === undefined) return made(file);
  if (!there.isFile()) throw Object.assign(new Error(`${file} is no file`), { code: "EISDIR" });
  if ((there.mode & 0o077) !== 0) chmodSync(file, 0o600);
  return file;
}

/** Two may come here at once; the second finds what it wanted. */
function made(file: string): string {
  try {
    closeSync(openSync(file, "wx", 0o600));
    return file;
  } catch (thrown) {
    if ((thrown as { readonly code?: unknown } | null)?.code === "EEXIST") return file;
    throw thrown;
  }
}
