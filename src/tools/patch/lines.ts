/** A text as patches see it. The mark of the byte order and the last newline are kept apart from its lines. */
export interface FileLines {
  readonly bom: boolean;
  /** Without their ends; of a file with mixed ones, each keeps its own carriage return. */
  readonly lines: readonly string[];
  readonly eol: "\n" | "\r\n";
  readonly newline: boolean;
}

const BOM = "\uFEFF";

/** `returns`: whether the patch itself speaks of carriage returns, which then are part of the lines. */
export function fileLines(text: string, returns: boolean): FileLines {
  const bom = text.startsWith(BOM);
  const bare = bom ? text.slice(1) : text;
  const uniform = !returns && bare.includes("\r\n") && !/(?:^|[^\r])\n/.test(bare);
  const eol = uniform ? "\r\n" : "\n";
  const lines = bare.split(eol);
  const newline = lines.at(-1) === "";
  if (newline) lines.pop();
  return { bom, lines, eol, newline };
}

export function fileText({ bom, lines, eol, newline }: FileLines): string {
  const end = newline && lines.length > 0 ? eol : "";
  return (bom ? BOM : "") + lines.join(eol) + end;
}
