import { createHash } from "node:crypto";
import { Cutter } from "../../src/search/files/cut-file.ts";
import { roleOf } from "../../src/search/ranked-query.ts";
import type { Chunk, StoredFile } from "../../src/search/search-store.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Cuts files as the pipeline would hand them to a store. */
export async function cutAll(contents: ReadonlyMap<string, string>): Promise<readonly StoredFile[]> {
  using cutter = new Cutter();
  const files: StoredFile[] = [];
  for (const [path, text] of contents) {
    const made = await cutter.cut(path, Buffer.from(text));
    if (made.kind === "skipped") continue;
    const role = roleOf(path);
    const chunks = made.pieces.map((piece): Chunk => {
      const hash = sha256(piece.text);
      const hex = sha256(`${path}\0${piece.start}\0${hash}`);
      const id = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
      return { ...piece, id, path, language: made.language, role, hash, trust: "trusted" };
    });
    files.push({ path, hash: sha256(text), chunks });
  }
  return files;
}
