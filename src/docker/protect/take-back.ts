import path from "node:path";
import { bytesOfText } from "../../core/byte-text.ts";
import type { Done } from "./inert.ts";

/** What was taken out, and where it is now. */
export interface Taken {
  readonly from: string;
  readonly to: string;
  /** What was done to it there. */
  readonly done: Done;
}

/**
 * A script for sh that puts a thing back as it was, names and rights too. Whatever it is called: every word stands
 * in single quotes. It works beside the place where the thing was, moves it there as its last step, and stops at the
 * first failure, so that nothing of it is obeyed before it is whole.
 */
export function takeBackScript({ from, to, done }: Taken): Buffer {
  const name = word(`./${path.basename(from)}`);
  const lines = [
    "#!/bin/sh",
    "set -eu",
    "unset CDPATH",
    ...pieces(path.dirname(from)).map((piece) => `cd -P -- ${word(piece)}`),
    `if [ -e ${name} ] || [ -L ${name} ]; then echo "it is there already: nothing was moved" >&2; exit 1; fi`,
    `stage=$(mktemp -d ./.harness-take-back-XXXXXX)`,
    `mv -nT -- ${word(to)} "$stage/item"`,
    ...insideLines(done),
    `mv -nT -- "$stage/item" ${name}`,
    ...done.modes.filter(isTop).map(({ mode }) => `chmod ${mode.toString(8)} ${name}`),
    `rmdir -- "$stage"`,
    "",
  ];
  return bytesOfText(lines.join("\n"));
}

const isTop = ({ part, rel }: Done["modes"][number]): boolean => part === 0 && rel === "";

function insideLines({ cuts, modes, renames, partName }: Done): readonly string[] {
  const inside = modes.filter((one) => !isTop(one));
  if (cuts.length + inside.length + renames.length === 0) return [];
  const place = (part: number, rel: string): string =>
    word(`./${[part === 0 ? "" : partName(part), rel].filter((one) => one !== "").join("/")}`);
  const rights = inside.map(({ part, rel, mode, folder }) => ({
    part,
    folder,
    line: `chmod ${mode.toString(8)} ${place(part, rel)}`,
  }));
  // A folder that its owner may not enter gets its rights back when all is in it: from the last part to the first.
  const closing = Map.groupBy(
    rights.filter(({ folder }) => folder),
    ({ part }) => part,
  );
  const closed = (part: number): readonly string[] =>
    (closing.get(part) ?? []).map(({ line }) => line).toReversed();
  const joined = cuts.flatMap(({ part, rel }, index) => [
    [...closed(index + 1), `mv -nT -- ${place(index + 1, "")} ${place(part, rel)}`],
  ]);
  return [
    `cd -P -- "$stage/item"`,
    ...renames.map(
      ({ part, rel, name, held }) =>
        `mv -nT -- ${place(part, below(rel, held))} ${place(part, below(rel, name))}`,
    ),
    ...rights.filter(({ folder }) => !folder).map(({ line }) => line),
    ...joined.toReversed().flat(),
    ...closed(0),
    "cd -P ../..",
  ];
}

const below = (rel: string, name: string): string => (rel === "" ? name : `${rel}/${name}`);

const word = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

const LONGEST = 2000;

/** Steps to a folder, none too long for one call; the first is absolute. */
function pieces(folder: string): readonly string[] {
  const found: string[] = [];
  let piece = "";
  for (const part of folder.split("/").filter((name) => name !== "")) {
    if (piece.length + part.length > LONGEST) {
      found.push(piece);
      piece = ".";
    }
    piece += `/${part}`;
  }
  return [...found, piece === "" ? "/" : piece];
}
