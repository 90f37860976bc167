/** Static braces: names, numbers and patterns in them, no quotes and no expansions. */
export const isStatic = (text: string): boolean => /^[\w.,/{}:@%+=*?-]*$/.test(text);

const MOST = 64;

/** What bash makes of `{a,b{1..3}}`. Null for more than `MOST` results, or deeper than anybody writes. */
export const expandBraces = (text: string): readonly string[] | null => expand(text, 0);

function expand(text: string, depth: number): readonly string[] | null {
  if (depth > 8) return null;
  const found = firstGroup(text);
  if (found === null) return [text];
  const { open, close, commas } = found;
  const before = text.slice(0, open);
  const middles =
    commas.length > 0 ? alternatives(text, found, depth) : sequence(text.slice(open + 1, close));
  const rest = expand(text.slice(close + 1), depth + 1);
  if (middles === null || rest === null || middles.length * rest.length > MOST) return null;
  return middles.flatMap((middle) => rest.map((after) => before + middle + after));
}

interface Group {
  readonly open: number;
  readonly close: number;
  readonly commas: readonly number[];
}

/** The first pair of braces that is an expansion: with a comma of its own, or a sequence. */
function firstGroup(text: string): Group | null {
  for (let open = text.indexOf("{"); open !== -1; open = text.indexOf("{", open + 1)) {
    const group = groupAt(text, open);
    if (group !== null && (group.commas.length > 0 || sequence(text.slice(open + 1, group.close)) !== null))
      return group;
  }
  return null;
}

function groupAt(text: string, open: number): Group | null {
  const commas: number[] = [];
  let depth = 0;
  for (let at = open; at < text.length; at += 1) {
    const letter = text.charAt(at);
    if (letter === "{") depth += 1;
    else if (letter === "}") {
      depth -= 1;
      if (depth === 0) return { open, close: at, commas };
    } else if (letter === "," && depth === 1) commas.push(at);
  }
  return null;
}

function alternatives(text: string, { open, close, commas }: Group, depth: number): readonly string[] | null {
  const ends = [...commas, close];
  const parts = ends.map((end, index) => expand(text.slice((ends[index - 1] ?? open) + 1, end), depth + 1));
  return parts.includes(null) ? null : parts.flatMap((part) => part ?? []);
}

/** `1..5`, `a..e`, with a step; null when it is none, or too long. */
function sequence(text: string): readonly string[] | null {
  const match = /^(?:(-?\d{1,9})\.\.(-?\d{1,9})|([A-Za-z])\.\.([A-Za-z]))(?:\.\.(-?\d{1,4}))?$/.exec(text);
  if (match === null) return null;
  const [, low, high, first, last, step] = match;
  const letters = first !== undefined && last !== undefined;
  const [from, to] = letters ? [first.charCodeAt(0), last.charCodeAt(0)] : [Number(low), Number(high)];
  const by = Math.max(1, Math.abs(Number(step ?? 1)));
  const count = Math.floor(Math.abs(to - from) / by) + 1;
  if (count > MOST) return null;
  const width = letters ? 0 : padding(low ?? "", high ?? "");
  return Array.from({ length: count }, (_, index) => {
    const value = from + (to < from ? -1 : 1) * index * by;
    return letters ? String.fromCharCode(value) : padded(value, width);
  });
}

/** Numbers get the width of the longer one where either begins with a zero. */
const padding = (low: string, high: string): number =>
  /^-?0\d/.test(low) || /^-?0\d/.test(high) ? Math.max(low.length, high.length) : 0;

const padded = (value: number, width: number): string =>
  value < 0 ? `-${String(-value).padStart(width - 1, "0")}` : String(value).padStart(width, "0");
