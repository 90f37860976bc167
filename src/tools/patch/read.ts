import { readEnvelope } from "./envelope.ts";
import { type FilePatch, PatchMistake } from "./patch.ts";
import { readUnified } from "./unified.ts";

export type ReadPatch =
  | { readonly kind: "patch"; readonly files: readonly FilePatch[] }
  | { readonly kind: "mistake"; readonly why: string };

const ENVELOPE = /^\*\*\* (?:Begin Patch|Add File: |Update File: |Delete File: )/m;

/** A patch in either notation. */
export function readPatch(text: string): ReadPatch {
  const lines = linesOf(text.toWellFormed());
  try {
    const files = ENVELOPE.test(lines.join("\n")) ? readEnvelope(lines) : readUnified(lines);
    if (files.length > 0) return { kind: "patch", files };
    return { kind: "mistake", why: `no file is named in this patch. ${FORM}` };
  } catch (thrown) {
    if (!(thrown instanceof PatchMistake)) throw thrown;
    return { kind: "mistake", why: thrown.message };
  }
}

const FORM =
  "Send *** Begin Patch, *** Update File: path, lines that begin with a space, - or +, *** End Patch; or a unified diff";

/** Where every line ends in a carriage return, that is how it was sent, not what it says. */
function linesOf(text: string): readonly string[] {
  const lines = text.split("\n");
  const last = lines.at(-1);
  const sent = lines.slice(0, -1);
  const carried = sent.length > 0 && sent.every((line) => line.endsWith("\r"));
  const all = last === "" ? sent : lines;
  return carried ? all.map((line) => line.replace(/\r$/, "")) : all;
}
