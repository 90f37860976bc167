// also slow: all cases of its properties
import assert from "node:assert/strict";
import { test } from "node:test";
import { colouredLine } from "../../../src/render/tui/markdown-spans.ts";
import { MarkdownRows, markdownRows } from "../../../src/render/tui/markdown-rows.ts";
import { rowWidth, type SpanRow, textOfRow } from "../../../src/render/tui/text-rows.ts";
import { fc, part } from "../../fixtures/property.ts";

/** Styles in braces before the text that they are for. */
const told = (rows: readonly SpanRow[]): readonly string[] =>
  rows.map((row) =>
    row.map(({ text, styles }) => (styles.length === 0 ? text : `{${styles.join(" ")}}${text}{}`)).join(""),
  );
const rowsOf = (text: string, width = 60): readonly string[] => told(markdownRows(text, width));

test("blocks are laid out for people", () => {
  const rows: readonly (readonly [text: string, ...rows: string[]])[] = [
    ["# A `title` #", "{heading}A {}{code heading}title{}"],
    ["#no title", "#no title"],
    ["- one\n  - two\n    3. three", "• one", "  • two", "    3. three"],
    ["- [ ] open\n- [x] done", "☐ open", "☑ done"],
    ["> said\n> > twice", "{dim}│ {}said", "{dim}│ │ {}twice"],
    ["a\n\n\n\nb", "a", "", "b"],
    ["---", `{dim}${"─".repeat(60)}{}`],
    ["```\na  **b**\n```\nc", "  a  **b**", "c"],
    ["> ```\n> x\n> ```\ny", "{dim}│ {}  x", "y"],
    ["~~~~\n```\n~~~\n~~~~~\nout", "  ```", "  ~~~", "out"],
  ];
  for (const [text, ...expected] of rows) assert.deepEqual(rowsOf(text), expected, text);
});

test("marks within a line become styles, and unmatched marks stay text", () => {
  const rows: readonly (readonly [text: string, row: string])[] = [
    ["a **b *c* d** e", "a {bold}b {}{bold italic}c{}{bold} d{} e"],
    ["***a***", "{italic bold}a{}"],
    ["_a_ snake_case_name __b__", "{italic}a{} snake_case_name {bold}b{}"],
    ["2 * 3 * 4 and **open", "2 * 3 * 4 and **open"],
    ["~~a~~ ~b~", "{strike}a{} ~b~"],
    ["`a **b**` ``c`d``", "{code}a **b**{} {code}c`d{}"],
    ["\\*a\\* `open", "*a* `open"],
    [
      "[a](https://x.y/z_(q)) [b] <https://x.y>",
      "{link}a{}{dim} (https://x.y/z_(q)){} [b] {link}https://x.y{}",
    ],
    ["<b>&amp;</b>", "<b>&amp;</b>"],
  ];
  for (const [text, row] of rows) assert.deepEqual(rowsOf(text, 100), [row], text);
});

test("code is coloured, including comments and strings over several lines", () => {
  const colours: readonly (readonly [language: string, code: string, row: string])[] = [
    [
      "ts",
      'const a = "x" + 12; // c',
      '  {keyword}const{} a = {string}"x"{} + {number}12{}; {comment}// c{}',
    ],
    ["py", "def f(): # c", "  {keyword}def{} f(): {comment}# c{}"],
    ["sh", "echo $#x 'a'", "  {keyword}echo{} $#x {string}'a'{}"],
    ["json", '{"a": true}', '  {{string}"a"{}: {keyword}true{}}'],
    ["sql", "SELECT 1 -- c", "  {keyword}SELECT{} {number}1{} {comment}-- c{}"],
    ["diff", "+a", "  {added}+a{}"],
    ["diff", "-a", "  {removed}-a{}"],
    ["brainfuck", "const + 1", "  const + 1"],
  ];
  for (const [language, code, row] of colours)
    assert.deepEqual(rowsOf(`\`\`\`${language}\n${code}\n\`\`\``), [`{dim}${language}{}`, row], code);
  assert.deepEqual(rowsOf("```ts\n/* a\nif */ if\n`b\nif` if\n```").slice(1), [
    "  {comment}/* a{}",
    "  {comment}if */{} {keyword}if{}",
    "  {string}`b{}",
    "  {string}if`{} {keyword}if{}",
  ]);
});

test("a table fits the width, and its columns take only the width they need", () => {
  const text = "| a | right |\n|---|--:|\n| one | 2 |\n| four words of text | `3|4` |\n\nend";
  assert.deepEqual(markdownRows(text, 20).map(textOfRow), [
    "a            │ right",
    "─────────────┼──────",
    "one          │     2",
    "four words   │   3|4",
    "of text      │      ",
    "",
    "end",
  ]);
  assert.deepEqual(rowsOf("a | b\nno rule"), ["a | b", "no rule"]);
  const wide = `${"| a ".repeat(30)}|\n${"|---".repeat(30)}|\n`;
  assert.ok(markdownRows(wide, 20).every((row) => rowWidth(row) <= 20));
});

const MARKS =
  "a|word |* |**|*|_|__|`|``|```|```ts|~~|~~~|# |- |1. |> |\n|\n\n|[|](|)|||--|:-|\\|漢|🇩🇪|👨‍👩‍👧|\u0301|\u001B[31m|\u202E|  |    |'|\"|/*|*/|//|\t|<|\r";
const markdown = fc
  .array(fc.constantFrom(...MARKS.split(/\|(?=[^|])|(?<=\|\|)\|/), "|"), { maxLength: 60 })
  .map((parts) => parts.join(""));

test("however a text is split, its rows are the same, none is too wide, and none contains control characters", () => {
  fc.assert(
    fc.property(
      markdown,
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 10, max: 40 }),
      (text, size, width) => {
        const whole = markdownRows(text, width);
        const stream = new MarkdownRows(width);
        const rows: SpanRow[] = [];
        for (let at = 0; at < text.length; at += size) {
          rows.push(...stream.push(text.slice(at, at + size)));
          for (const row of stream.open()) assert.ok(rowWidth(row) <= width, JSON.stringify(row));
        }
        rows.push(...stream.end());
        assert.deepEqual(told(rows), told(whole));
        for (const row of whole) {
          assert.ok(rowWidth(row) <= width, JSON.stringify(row));
          assert.doesNotMatch(textOfRow(row), /[\p{Cc}\u202E]/u);
        }
      },
    ),
    { numRuns: part(400) },
  );
});

test("no word is lost, whatever surrounds it", () => {
  const words = fc.array(
    fc.constantFrom("*", "**", "`", "# ", "- ", "> ", "|", "\n", " ", "[", "]", "~~", "```\n"),
    {
      maxLength: 30,
    },
  );
  fc.assert(
    fc.property(words, fc.integer({ min: 12, max: 40 }), (marks, width) => {
      const text = marks.map((mark, at) => `${mark}w${at % 10}`).join(" ");
      const shown = markdownRows(text, width).map(textOfRow).join("").replaceAll(/[ │]/g, "");
      const wanted = text.match(/w\d/g) ?? [];
      assert.deepEqual(
        shown.match(/w\d/g)?.toSorted() ?? [],
        wanted.toSorted(),
        JSON.stringify([text, shown]),
      );
    }),
  );
});

const open = (text: string): readonly string[] => {
  const rows = new MarkdownRows(60);
  rows.push(text);
  return told(rows.open());
};

test("a long paragraph has no blank row, and no word is broken", () => {
  for (const word of ["word ", "harness "])
    for (let width = 20; width <= 100; width += 1) {
      const rows = markdownRows(word.repeat(3000), width).map(textOfRow);
      for (const row of rows)
        assert.match(row, /^(?:word|harness)(?: (?:word|harness))*$/, `${width} columns`);
    }
});

test("unfinished text is shown without its unclosed marks", () => {
  const cases: readonly (readonly [text: string, ...rows: string[]])[] = [
    ["a **bo", "a {bold}bo{}"],
    ["a **bold*", "a {bold}bold{}"],
    ["a **", "a "],
    ["a `co", "a {code}co{}"],
    ["a [b](http", "a {link}b{}"],
    ["##"],
    ["- "],
    ["``"],
    ["```ts"],
    ["# A", "{heading}A{}"],
  ];
  for (const [text, ...expected] of cases)
    assert.deepEqual(
      open(text).map((row) => row.trimEnd()),
      expected.map((row) => row.trimEnd()),
      text,
    );
});

/** Characters examined per character of the text, read in pieces and displayed after each. */
function work(text: string, piece = 500): number {
  const rows = new MarkdownRows(80);
  for (let at = 0; at < text.length; at += piece) {
    rows.push(text.slice(at, at + piece));
    rows.open();
  }
  rows.end();
  return rows.looked / text.length;
}

test("twice the text takes at most twice the work, whatever it contains", () => {
  const shapes = [
    "_a_",
    "**a",
    "[",
    "`",
    "`a``",
    "> ",
    "| a ",
    "| a |\n|---|\n",
    "| a |\n",
    "```\n",
    "- ",
    "\n",
    "a",
  ];
  for (const shape of shapes) {
    const [once, twice] = [10_000, 20_000].map((size) => work(shape.repeat(size / shape.length)));
    assert.ok((twice ?? 0) <= (once ?? 0) * 1.2, `${JSON.stringify(shape)}: ${once} ${twice}`);
    assert.ok((once ?? 0) < 12, `${JSON.stringify(shape)}: ${once}`);
  }
  const fence = `\`\`\`ts\n${"const a = 1;\n".repeat(3000)}`;
  assert.ok(work(fence) < 1.2, String(work(fence)));
});

test("an endless line and a hundred thousand quotes are read completely", () => {
  const line = markdownRows("x".repeat(1_000_000), 100);
  assert.equal(
    line.reduce((sum, row) => sum + textOfRow(row).length, 0),
    1_000_000,
  );
  const quotes = markdownRows(`${">".repeat(100_000)} deep`, 40);
  assert.match(quotes.map(textOfRow).join(" "), /deep/);
});

test("marks nested in marks of the same kind add nothing", () => {
  const nested = `${"*a **b ".repeat(250)}${"c** d* ".repeat(250)}`;
  const spans = markdownRows(nested, 80).flat();
  assert.ok(spans.length > 0);
  assert.deepEqual([...new Set(spans.map(({ styles }) => styles.toSorted().join(" ")))].toSorted(), [
    "bold italic",
    "italic",
  ]);
});

test("unclosed quotes are searched only once in a line", () => {
  let looked = 0;
  const line = new Proxy(Object("'\\".repeat(2000)) as object, {
    get: (target, key) => {
      looked += 1;
      const value = Reflect.get(target, key) as unknown;
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  const { spans } = colouredLine(line as unknown as string, "js", undefined);
  assert.ok(spans.length > 0 && looked < 200_000, String(looked));
});
