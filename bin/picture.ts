/** `npm run picture`: runs the demo and draws what a person sees as docs/demo.svg. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { stripVTControlCharacters } from "node:util";

const root = path.join(import.meta.dirname, "..");
const CLASS_OF: Readonly<Record<string, string>> = { "1": "b", "2": "d", "31": "r", "32": "g", "33": "y" };
const [LINE, COLUMN, PAD] = [19, 8.4, 18];

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** One terminal line as spans; codes that are not in the table end the colour. */
function spansOf(line: string): string {
  let style = "";
  return line
    .split(/\u001B\[([0-9;]*)m/)
    .map((part, index) => {
      if (index % 2 === 0) return part === "" ? "" : `<tspan class="${style}">${escaped(part)}</tspan>`;
      style = CLASS_OF[part] ?? "";
      return "";
    })
    .join("");
}

/** As anybody sees it: without this user's settings and sessions, in the usual folder for what is temporary. */
const home = mkdtempSync(path.join(tmpdir(), "harness-picture-"));
const demo = spawnSync(path.join(root, "bin", "harness"), ["demo"], {
  encoding: "utf8",
  env: { ...process.env, XDG_CONFIG_HOME: home, XDG_STATE_HOME: home, TMPDIR: "/tmp", FORCE_COLOR: "1" },
});
rmSync(home, { recursive: true });
if (demo.status !== 0) throw new Error(`the demo ended with ${demo.status}: ${demo.stderr}`);
const lines = ["$ ./start.sh demo", "", ...`${demo.stderr}${demo.stdout}`.trimEnd().split("\n")];
const columns = Math.max(...lines.map((line) => stripVTControlCharacters(line).length));
const [width, height] = [Math.ceil(columns * COLUMN) + 2 * PAD, lines.length * LINE + 2 * PAD];
const rows = lines.map(
  (line, index) => `<text x="${PAD}" y="${PAD + (index + 1) * LINE - 4}">${spansOf(line)}</text>`,
);
writeFileSync(
  path.join(root, "docs", "demo.svg"),
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
<title>harness demo in a terminal</title>
<style>text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#d8dee9;white-space:pre}.b{font-weight:700;fill:#fff}.d{fill:#8b95a7}.g{fill:#8fce7a}.r{fill:#f07178}.y{fill:#e5c07b}</style>
<rect width="100%" height="100%" rx="8" fill="#14181f"/>
${rows.join("\n")}
</svg>
`,
);
