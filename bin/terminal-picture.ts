import { stripVTControlCharacters } from "node:util";

/** Draws a terminal screen as SVG: rows of text with the colours of SGR sequences; other sequences are ignored. */

const LINE = 19;
const COLUMN = 8.43;
const PAD = 18;

/** The sixteen colours of a terminal, dark ones first. */
const PALETTE = [
  "#4c566a",
  "#f07178",
  "#8fce7a",
  "#e5c07b",
  "#7aa2f7",
  "#c792ea",
  "#6fc7d3",
  "#d8dee9",
  "#8b95a7",
  "#ff8b92",
  "#a5e08f",
  "#f2d08c",
  "#9dbcff",
  "#d8b0f5",
  "#8fdde7",
  "#ffffff",
] as const;
const INK = "#d8dee9";
const FAINT = "#8b95a7";
const GROUND = "#14181f";

interface Style {
  readonly colour?: string | undefined;
  readonly ground?: string | undefined;
  readonly bold?: boolean;
  readonly dim?: boolean;
  readonly italic?: boolean;
  readonly underline?: boolean;
  readonly inverse?: boolean;
}

interface Run {
  readonly text: string;
  readonly style: Style;
}

export interface TerminalPicture {
  readonly title: string;
  readonly rows: readonly string[];
  /** Minimum number of columns; by default the length of the longest row. */
  readonly columns?: number;
}

/** Places each column as a terminal does. */
export function terminalPicture({ title, rows, columns = 0 }: TerminalPicture): string {
  const longest = Math.max(columns, ...rows.map((row) => columnsOf(stripVTControlCharacters(row))));
  const [width, height] = [Math.ceil(longest * COLUMN) + 2 * PAD, rows.length * LINE + 2 * PAD];
  let style: Style = {};
  const drawn = rows.map((row, at) => {
    const { runs, last } = runsOf(row, style);
    style = last;
    return rowOf(runs, PAD + at * LINE);
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
<title>${escaped(title)}</title>
<style>text{font:14px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:${INK};white-space:pre}</style>
<rect width="100%" height="100%" rx="8" fill="${GROUND}"/>
${drawn.join("\n")}
</svg>
`;
}

function rowOf(runs: readonly Run[], top: number): string {
  let column = 0;
  const grounds: string[] = [];
  const spans: string[] = [];
  for (const { text, style } of runs) {
    const [x, wide] = [PAD + column * COLUMN, columnsOf(text) * COLUMN];
    column += columnsOf(text);
    const ground = style.inverse === true ? (style.colour ?? INK) : style.ground;
    if (ground !== undefined)
      grounds.push(
        `<rect x="${number(x)}" y="${top}" width="${number(wide)}" height="${LINE}" fill="${ground}"/>`,
      );
    if (text.trim() !== "") spans.push(`<tspan x="${number(x)}"${looks(style)}>${escaped(text)}</tspan>`);
  }
  return `${grounds.join("")}<text xml:space="preserve" y="${top + LINE - 4}">${spans.join("")}</text>`;
}

function looks({ colour, ground, bold, dim, italic, underline, inverse }: Style): string {
  const fill = inverse === true ? (ground ?? GROUND) : (colour ?? (dim === true ? FAINT : undefined));
  return [
    ...(fill === undefined ? [] : [` fill="${fill}"`]),
    ...(bold === true ? [' font-weight="700"'] : []),
    ...(dim === true && colour !== undefined ? [' opacity="0.7"'] : []),
    ...(italic === true ? [' font-style="italic"'] : []),
    ...(underline === true ? [' text-decoration="underline"'] : []),
  ].join("");
}

function runsOf(row: string, from: Style): { readonly runs: readonly Run[]; readonly last: Style } {
  let style = from;
  const runs: Run[] = [];
  for (const [at, part] of row.split(/\u001B\[([\d;]*)m/).entries())
    if (at % 2 === 1) style = styled(style, part);
    else if (part !== "") runs.push({ text: stripVTControlCharacters(part), style });
  return { runs, last: style };
}

const CODES: Readonly<Record<number, Style>> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  39: { colour: undefined },
  49: { ground: undefined },
};

function styled(before: Style, codes: string): Style {
  const numbers = codes.split(";").map(Number);
  let style = before;
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at] ?? 0;
    if (code === 0) style = {};
    else if (code === 38 || code === 48) {
      const { colour, length } = longColour(numbers.slice(at + 1));
      style = { ...style, [code === 38 ? "colour" : "ground"]: colour };
      at += length;
    } else style = { ...style, ...(CODES[code] ?? shortColour(code)) };
  }
  return style;
}

function shortColour(code: number): Style {
  const place = [30, 40, 90, 100].find((first) => code >= first && code < first + 8);
  if (place === undefined) return {};
  const colour = PALETTE[code - place + (place >= 90 ? 8 : 0)];
  return place === 30 || place === 90 ? { colour } : { ground: colour };
}

/** Parses the codes after 38 and 48: one of 256 colours, or red, green and blue. */
function longColour([form, ...rest]: readonly number[]): {
  readonly colour: string | undefined;
  readonly length: number;
} {
  if (form === 2) return { colour: `rgb(${rest.slice(0, 3).join(",")})`, length: 4 };
  if (form !== 5) return { colour: undefined, length: 0 };
  const index = rest[0] ?? 0;
  if (index < 16) return { colour: PALETTE[index], length: 2 };
  if (index >= 232)
    return {
      colour: `rgb(${Array(3)
        .fill(8 + (index - 232) * 10)
        .join(",")})`,
      length: 2,
    };
  const cube = [36, 6, 1].map((part) => Math.floor((index - 16) / part) % 6);
  return { colour: `rgb(${cube.map((step) => (step === 0 ? 0 : 55 + step * 40)).join(",")})`, length: 2 };
}

/** One column per character: the pictures contain no wide characters. */
const columnsOf = (text: string): number => [...new Intl.Segmenter().segment(text)].length;

const number = (value: number): string => String(Math.round(value * 10) / 10);

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
