import { visible, visibleLine } from "../../core/visible.ts";
import { fitted, widthOfStream } from "./fitted.ts";
import { type Output, styleText } from "./output.ts";

interface Hit {
  readonly path: string;
  readonly start: number;
  readonly end: number;
  readonly symbol: string | null;
  readonly preview: string;
  readonly why: string;
}

/** What a search found, best first: the place, why it is here, and its lines. */
export function hitLines(hits: readonly Hit[], stream: Output): string {
  const width = widthOfStream(stream);
  return hits
    .map((hit) => {
      const place = styleText("bold", `${visibleLine(hit.path)}:${hit.start}-${hit.end}`, { stream });
      const symbol = hit.symbol === null ? "" : ` ${visibleLine(hit.symbol)}`;
      const why =
        hit.why === "" ? "" : `${styleText("dim", fitted(`  ${visibleLine(hit.why)}`, width), { stream })}\n`;
      const lines = visible(hit.preview)
        .split("\n")
        .map((line) => `${fitted(`    ${line}`, width)}\n`);
      return `${place}${symbol}\n${why}${lines.join("")}`;
    })
    .join("\n");
}
