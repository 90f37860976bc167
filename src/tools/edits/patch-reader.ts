import {
  type FilePatch,
  type Hunk,
  hunkLine,
  type HunkLine,
  PatchMistake,
  readUnified,
} from "./unified-patch.ts";
type ReadPatch =
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

/** If every line ends in a carriage return, these come from the transport and are not part of the patch. */
function linesOf(text: string): readonly string[] {
  const lines = text.split("\n");
  const last = lines.at(-1);
  const sent = lines.slice(0, -1);
  const carried = sent.length > 0 && sent.every((line) => line.endsWith("\r"));
  const all = last === "" ? sent : lines;
  return carried ? all.map((line) => line.replace(/\r$/, "")) : all;
}

const HEAD = /^\*\*\* (Add|Update|Delete) File: (.+)$/;
const MOVE = /^\*\*\* Move to: (.+)$/;
const END_OF_FILE = /^\*\*\* End of File\s*$/;
const BEGIN = /^\*\*\* Begin Patch\s*$/;
const END = /^\*\*\* End Patch\s*$/;

/** The notation between `*** Begin Patch` and `*** End Patch`; text around it is ignored. */
function readEnvelope(lines: readonly string[]): readonly FilePatch[] {
  const begin = lines.findIndex((line) => BEGIN.test(line));
  const end = lines.findLastIndex((line) => END.test(line));
  const inner = lines.slice(begin + 1, end > begin ? end : lines.length);
  const heads = [...inner.keys()].filter((index) => HEAD.test((inner[index] ?? "").trimEnd()));
  const stray = inner.slice(0, heads[0] ?? inner.length).find((line) => line.trim() !== "");
  if (begin >= 0 && stray !== undefined)
    throw new PatchMistake(`"${stray}" stands before any *** Add, Update or Delete File: line`);
  return heads.map((at, index) =>
    section(inner[at] ?? "", inner.slice(at + 1, heads[index + 1] ?? inner.length)),
  );
}

function section(head: string, body: readonly string[]): FilePatch {
  const [, kind, path = ""] = HEAD.exec(head.trimEnd()) ?? [];
  if (kind === "Add") return { what: "add", path, hunks: [added(path, body)] };
  if (kind === "Delete") {
    const more = body.find((line) => line.trim() !== "");
    if (more === undefined) return { what: "delete", path, hunks: [] };
    throw new PatchMistake(`${path}: "${more}" stands below *** Delete File`);
  }
  const to = MOVE.exec((body[0] ?? "").trimEnd())?.[1];
  if (to !== undefined) return { what: "update", path, to, hunks: hunksOf(path, body.slice(1)) };
  const hunks = hunksOf(path, body);
  if (hunks.length === 0) throw new PatchMistake(`${path}: nothing stands below its name`);
  return { what: "update", path, hunks };
}

function added(path: string, body: readonly string[]): Hunk {
  const end = body.findLastIndex((line) => line.startsWith("+"));
  const lines = body.slice(0, end + 1).map((line): HunkLine => {
    if (line.startsWith("+")) return { mark: "+", text: line.slice(1) };
    throw new PatchMistake(`${path}: each line of an added file begins with +, but one is "${line}"`);
  });
  const stray = body.slice(end + 1).find((line) => line.trim() !== "" && !END_OF_FILE.test(line));
  if (stray !== undefined)
    throw new PatchMistake(`${path}: each line of an added file begins with +, but one is "${stray}"`);
  return { anchors: [], lines, atEnd: false };
}

interface OpenHunk {
  readonly anchors: string[];
  readonly lines: HunkLine[];
  atEnd: boolean;
}

function hunksOf(path: string, body: readonly string[]): readonly Hunk[] {
  const hunks: OpenHunk[] = [];
  const opened = (): OpenHunk => {
    const hunk = { anchors: [], lines: [], atEnd: false };
    hunks.push(hunk);
    return hunk;
  };
  for (const line of withoutBlankTail(body)) {
    const last = hunks.at(-1);
    if (line.startsWith("@@")) (last?.lines.length === 0 ? last : opened()).anchors.push(...anchorIn(line));
    else if (!END_OF_FILE.test(line))
      (last === undefined || last.atEnd ? opened() : last).lines.push(lineIn(path, line));
    else if (last !== undefined) last.atEnd = true;
  }
  return hunks.filter(({ lines }) => lines.length > 0);
}

function anchorIn(line: string): readonly string[] {
  const anchor = line
    .replace(/^@@ ?/, "")
    .replace(/ ?@@\s*$/, "")
    .trimEnd();
  return anchor === "" || RANGE.test(anchor) ? [] : [anchor];
}

function lineIn(path: string, line: string): HunkLine {
  const read = hunkLine(line);
  if (read !== undefined) return read;
  throw new PatchMistake(`${path}: each line of a hunk begins with a space, - or +, but one is "${line}"`);
}

/** Line numbers of a unified diff inside the other notation. */
const RANGE = /^-\d+(?:,\d+)? \+\d+(?:,\d+)?(?: @@.*)?$/;

function withoutBlankTail(lines: readonly string[]): readonly string[] {
  return lines.slice(0, lines.findLastIndex((line) => line.trim() !== "" || line.startsWith(" ")) + 1);
}
