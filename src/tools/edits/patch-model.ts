/** A patch as both notations mean it. */
export interface FilePatch {
  readonly what: "add" | "update" | "delete";
  /** As it is written in the patch. */
  readonly path: string;
  /** Where the file goes, when it is moved. */
  readonly to?: string;
  /** Permissions it shall have, where the patch says so. */
  readonly mode?: number;
  /** One hunk without a place for an added file. */
  readonly hunks: readonly Hunk[];
}

export interface Hunk {
  /** Of the old file, from 0; undefined where the notation has no numbers. */
  readonly at?: number;
  /** A line above which the hunk is not; one after the other. */
  readonly anchors: readonly string[];
  readonly lines: readonly HunkLine[];
  /** It ends where the file does. */
  readonly atEnd: boolean;
  /** What `\ No newline at end of file` says of the old and the new text; undefined where nothing is said. */
  readonly newline?: { readonly old: boolean; readonly young: boolean };
}

export interface HunkLine {
  readonly mark: " " | "-" | "+";
  readonly text: string;
}

/** What is wrong with a patch, and what to send instead. It is caught where patches are read and where they are made. */
export class PatchMistake extends Error {
  override readonly name = "PatchMistake";
}

/** The mark in front of a line of a hunk; an empty line is a blank one of both texts. */
export function hunkLine(line: string): HunkLine | undefined {
  const mark = line[0] ?? " ";
  if (mark === " " || mark === "-" || mark === "+") return { mark, text: line.slice(1) };
  return line === "\r" ? { mark: " ", text: "\r" } : undefined;
}
