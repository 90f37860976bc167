import { hunkAt, isFileHead, isHunkHead, lineAt } from "./unified-hunk.ts";
import { type FilePatch, type Hunk, PatchMistake } from "./patch.ts";
import { NOTHING, pathIn, pathPair } from "./unified-path.ts";

/** What the lines above a file's hunks say of it. */
interface Head {
  readonly old?: string;
  readonly young?: string;
  readonly from?: string;
  readonly to?: string;
  readonly mode?: number;
  readonly gone: boolean;
  readonly fresh: boolean;
}

const EMPTY: Head = { gone: false, fresh: false };

/** A unified diff as diff and git write it, and as models write it with counts that are wrong. */
export function readUnified(lines: readonly string[]): readonly FilePatch[] {
  const files: FilePatch[] = [];
  for (let at = 0; at < lines.length;) {
    const line = lineAt(lines, at);
    if (!line.startsWith("diff --git ") && !isFileHead(lines, at)) {
      if (isHunkHead(line))
        throw new PatchMistake(`"${line}" stands before any --- and +++ lines that name a file`);
      at += 1;
      continue;
    }
    const { head, end } = headAt(lines, at);
    const hunks: Hunk[] = [];
    at = end;
    for (let next = notBlank(lines, at); isHunkHead(lineAt(lines, next)); next = notBlank(lines, at)) {
      const { hunk, end } = hunkAt(lines, next);
      hunks.push(hunk);
      at = end;
    }
    files.push(fileOf(head, hunks));
  }
  return files;
}

function notBlank(lines: readonly string[], at: number): number {
  let next = at;
  while (lines[next]?.trim() === "") next += 1;
  return next;
}

interface ReadHead {
  readonly head: Head;
  readonly end: number;
}

function headAt(lines: readonly string[], start: number): ReadHead {
  const { head, end } = gitHeadAt(lines, start);
  if (!isFileHead(lines, end)) return { head, end };
  const [old, young] = [pathIn(lineAt(lines, end).slice(4)), pathIn(lineAt(lines, end + 1).slice(4))];
  return { head: { ...head, ...pathPair(old, young) }, end: end + 2 };
}

function gitHeadAt(lines: readonly string[], start: number): ReadHead {
  const names = /^diff --git ([^\n]*)$/.exec(lineAt(lines, start))?.[1];
  if (names === undefined) return { head: EMPTY, end: start };
  let head = { ...EMPTY, ...namesOfGit(names) };
  let end = start + 1;
  for (; end < lines.length; end += 1) {
    const said = gitLine(lineAt(lines, end), names);
    if (said === undefined) break;
    head = { ...head, ...said };
  }
  return { head, end };
}

/** One of git's lines between the names and the hunks. */
function gitLine(line: string, names: string): Partial<Head> | undefined {
  if (/^(?:GIT binary patch|Binary files )/.test(line))
    throw new PatchMistake(`${names}: a binary file cannot be patched`);
  const [, key = "", value = ""] =
    /^(old mode|new mode|new file mode|deleted file mode|rename from|rename to|copy from|copy to|index|similarity index|dissimilarity index) (.*?)\r?$/.exec(
      line,
    ) ?? [];
  switch (key) {
    case "":
      return undefined;
    case "new mode":
      return { mode: modeOf(value) };
    case "new file mode":
      return { fresh: true, mode: modeOf(value) };
    case "deleted file mode":
      return { gone: true };
    case "rename from":
      return { from: pathIn(value) };
    case "rename to":
      return { to: pathIn(value) };
    case "copy from":
    case "copy to":
      throw new PatchMistake("copies are not supported: add the new file with its whole content");
    default:
      return {};
  }
}

function modeOf(text: string): number {
  if (!/^100[0-7]{3}$/.test(text))
    throw new PatchMistake(`mode ${text}: only ordinary files can be patched, no links and no submodules`);
  return Number.parseInt(text.slice(-3), 8);
}

/** `a/x b/x`: the halves are the same but for their first letter. */
function namesOfGit(text: string): Partial<Head> {
  const half = (text.trimEnd().length - 1) / 2;
  const [one, other] = [text.slice(0, half), text.slice(half + 1).trimEnd()];
  const names = pathPair(pathIn(one), pathIn(other));
  return names.old === names.young ? names : {};
}

function fileOf({ old, young, from, to, mode, gone, fresh }: Head, hunks: readonly Hunk[]): FilePatch {
  const [before, after] = [from ?? old, to ?? young];
  if (before === undefined || after === undefined)
    throw new PatchMistake("a file of the patch has no name: --- a/path and +++ b/path are missing");
  if (after === NOTHING || gone) return { what: "delete", path: before, hunks };
  const about = { ...(mode === undefined ? {} : { mode }), hunks };
  if (before === NOTHING || fresh) return { what: "add", path: after, ...about };
  return before === after
    ? { what: "update", path: before, ...about }
    : { what: "update", path: before, to: after, ...about };
}
