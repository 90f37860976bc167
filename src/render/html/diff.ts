import { cutText } from "./cut.ts";
import { type Html, markup } from "./escape.ts";

const LONGEST = 400_000;

/** What was changed, where that was kept. */
export function diffCard(diff: string | null): Html | undefined {
  if (diff === null || diff === "") return undefined;
  const lines = cutText(diff.trimEnd(), LONGEST).split("\n");
  return markup`<section class="card diff">
    <h2>Changes</h2>
    <pre>${lines.map((line) => markup`<span class="${kindOf(line)}">${line || " "}</span>`)}</pre>
  </section>`;
}

function kindOf(line: string): string {
  if (line.startsWith("+++") || line.startsWith("---") || line.startsWith("@@")) return "at";
  if (line.startsWith("+")) return "add";
  return line.startsWith("-") ? "del" : "same";
}
