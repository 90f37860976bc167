import { type FileLines, fileLines, fileText } from "./lines.ts";
import { type Found, locate } from "./locate.ts";
import { type Hunk, PatchMistake } from "./patch.ts";

interface Placed {
  readonly hunk: Hunk;
  readonly found: Found;
  /** Behind its last old line. */
  readonly end: number;
}

/** The text with all hunks made; throws the mistake when one of them has no place. */
export function applyHunks(name: string, text: string, hunks: readonly Hunk[]): string {
  const returns =
    text.includes("\r") && hunks.some(({ lines }) => lines.some(({ text }) => text.endsWith("\r")));
  const file = fileLines(text, returns);
  const placed = placesOf(name, file.lines, hunks).toSorted((one, other) => one.found.at - other.found.at);
  const lines: string[] = [];
  let from = 0;
  for (const { hunk, found, end } of placed) {
    if (found.at < from) throw new PatchMistake(`${name}: two of its hunks change the same lines`);
    lines.push(...file.lines.slice(from, found.at), ...madeBy(hunk, found, file.lines));
    from = end;
  }
  lines.push(...file.lines.slice(from));
  return fileText({ ...file, lines, newline: newlineOf(file, placed.at(-1)) });
}

function placesOf(name: string, lines: readonly string[], hunks: readonly Hunk[]): readonly Placed[] {
  const placed: Placed[] = [];
  let [after, drift] = [0, 0];
  for (const [index, hunk] of hunks.entries()) {
    const which = hunks.length > 1 ? `${name}: hunk ${index + 1} of ${hunks.length}` : name;
    const found = locate(hunk, { lines, after, drift, name: which });
    const end = found.at + hunk.lines.filter(({ mark }) => mark !== "+").length;
    placed.push({ hunk, found, end });
    after = end;
    drift = hunk.at === undefined ? drift : found.at - hunk.at;
  }
  return placed;
}

/** Lines that stay are the file's own; a new one takes a carriage return from the line it stands beside. */
function madeBy({ lines }: Hunk, { at, loose }: Found, old: readonly string[]): readonly string[] {
  let next = at;
  return lines.flatMap(({ mark, text }) => {
    if (mark === "+") {
      const beside = old[next - 1] ?? old[next] ?? "";
      const given = loose || lines.every((line) => line.mark === "+");
      return [given && beside.endsWith("\r") && !text.endsWith("\r") ? `${text}\r` : text];
    }
    next += 1;
    return mark === " " ? [old[next - 1] ?? ""] : [];
  });
}

/** As the patch says, where its last hunk reaches the end; else as it was. A file that was empty gets one. */
function newlineOf({ lines, newline }: FileLines, last: Placed | undefined): boolean {
  if (lines.length === 0) return last?.hunk.newline?.young ?? true;
  if (last === undefined || last.end < lines.length) return newline;
  const said = last.hunk.newline;
  if (said === undefined) return newline;
  return said.young;
}
