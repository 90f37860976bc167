import assert from "node:assert/strict";
import test from "node:test";
import { terminalPicture } from "../../bin/terminal-picture.ts";

const textOf = (svg: string): readonly string[] =>
  [...svg.matchAll(/<tspan([^>]*)>([^<]*)<\/tspan>/g)].map(
    ([, looks = "", text = ""]) => `${looks.trim()}|${text}`,
  );

test("the picture has the terminal's colours, column for column, also past the end of a row", () => {
  const rows = [
    "a \u001B[1;31mred\u001B[0m b",
    "\u001B[38;5;196mone",
    "two\u001B[39m three",
    "\u001B[7m on \u001B[27m",
  ];
  const svg = terminalPicture({ title: "t", rows });
  assert.deepEqual(textOf(svg), [
    'x="18"|a ',
    'x="34.9" fill="#f07178" font-weight="700"|red',
    'x="60.2"| b',
    'x="18" fill="rgb(255,0,0)"|one',
    'x="18" fill="rgb(255,0,0)"|two',
    'x="43.3"| three',
    'x="18" fill="#14181f"| on ',
  ]);
  assert.match(svg, /<rect x="18" y="75" width="33.7" height="19" fill="#d8dee9"\/>/);
});

test("other control sequences are dropped, and text that looks like markup is escaped", () => {
  const svg = terminalPicture({ title: "<t>", rows: ["\u001B]0;x\u0007<script>&\u001B[2J\u001B[5m"] });
  assert.deepEqual(textOf(svg), ['x="18"|&lt;script&gt;&amp;']);
  assert.ok(svg.includes("<title>&lt;t&gt;</title>") && !svg.includes("\u001B") && !svg.includes("\u0007"));
});
