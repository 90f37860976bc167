// also slow: longer texts
import assert from "node:assert/strict";
import test from "node:test";
import { answerStream, MarkdownStream } from "../../src/render/tty/answer-text.ts";
import { fakeTerminal, sent } from "../fakes/terminal.ts";
import { fc, part } from "../fixtures/property.ts";

const SHOWN: Readonly<Record<string, string>> = {
  "plain text": "plain text",
  "**bold** and `code`.": "<b>bold</b> and <c>code</c>.",
  "**a `b` c**": "<b>a <c>b</c> c</b>",
  "``a ` b``": "<c>a ` b</c>",
  "2 ** 3 * 4": "2 ** 3 * 4",
  "**never closed\n`nor this\n": "**never closed\n`nor this\n",
  "# Head\ntext": "<b>Head</b>\ntext",
  "#hash, not a head": "#hash, not a head",
  "## Head with `code`": "<b>Head with <c>code</c></b>",
  "- one\n  * two\n+ **three**": "• one\n  • two\n• <b>three</b>",
  "-x - y\n--- \n1. first": "-x - y\n--- \n1. first",
  "```js\n# not a head **nor bold**\n\n- x\n```\n# head":
    "<d>```js</d>\n# not a head **nor bold**\n\n- x\n<d>```</d>\n<b>head</b>",
  "````\n```\n**a**\n````\n**b**": "<d>````</d>\n```\n**a**\n<d>````</d>\n<b>b</b>",
  "```code``` in a line": "<c>code</c> in a line",
  "a\u001B[31m\r\nb\rc": "a␛[31m\nb␍c",
  "😀**😀**": "😀<b>😀</b>",
  "   \n\n": "   \n\n",
};

const NAMES: Readonly<Record<string, string>> = { 1: "<b>", 22: "</>", 2: "<d>", 36: "<c>", 39: "</c>" };

/** Shows colours as marks, and joins a style that ends where it begins again. */
function named(text: string): string {
  let open = "";
  return text.replaceAll(/\u001B\[22m\u001B\[1m/g, "").replaceAll(/\u001B\[(\d+)m/g, (_, code: string) => {
    if (code === "1" || code === "2") open = code === "1" ? "</b>" : "</d>";
    return code === "22" ? open : (NAMES[code] ?? `<${code}>`);
  });
}

function shownBy(pieces: readonly string[]): string {
  const { stream, written } = fakeTerminal(80, true);
  const shown = answerStream(stream);
  for (const piece of pieces) stream.write(shown.push(piece));
  stream.write(shown.end());
  return named(written());
}

for (const [text, shown] of Object.entries(SHOWN))
  test(`${JSON.stringify(text)} is shown as ${JSON.stringify(shown)}, in pieces of any size`, () => {
    assert.equal(shownBy([text]), shown);
    assert.equal(shownBy(text.split("")), shown);
  });

test("a reply is displayed the same, wherever it is split", () => {
  const marks = fc.constantFrom("`", "**", "*", "#", "-", " ", "\n", "```", "~~~", "x", "\r", "😀", "\u001B");
  const texts = fc.array(marks, { maxLength: 30 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(texts, fc.array(fc.nat(40), { maxLength: 6 }), (text, cuts) => {
      const places = [0, ...cuts.toSorted((a, b) => a - b), text.length].map((at) =>
        Math.min(at, text.length),
      );
      const pieces = places.slice(1).map((to, index) => text.slice(places[index], to));
      assert.equal(shownBy(pieces), shownBy([text]));
    }),
  );
});

test("only text that may still become markup is held back", () => {
  const { stream, written } = fakeTerminal(80, true);
  const answer = answerStream(stream);
  assert.equal(answer.push("Hello, "), "Hello, ");
  assert.equal(answer.push("this **is"), "this ");
  stream.write(answer.push(" bold** now"));
  assert.equal(written(), "\u001B[1mis bold\u001B[22m now");
  assert.equal(answer.push(` \`${"x".repeat(3000)}`), ` \`${"x".repeat(3000)}`);
});

test("marks are kept on a terminal without colours and in a pipe", () => {
  const text = "# **a** \u001B[31m\r\n`b`";
  const plain = answerStream(fakeTerminal(80).stream);
  assert.equal(plain.push(text) + plain.end(), "# **a** ␛[31m\n`b`");
  const pipe = answerStream(fakeTerminal().stream);
  assert.equal(pipe.push(text) + pipe.end(), "# **a** ␛[31m\n`b`");
});

test("a reply that ends inside a code block does not affect the next one", () => {
  const stream = answerStream(fakeTerminal(80, true).stream);
  assert.equal(named(sent(stream.push("```\ncode") + stream.end())), "<d>```</d>\ncode");
  assert.equal(named(sent(stream.push("# head") + stream.end())), "<b>head</b>");
});

/** How often each character was examined on average, how many were held at most, and how many were written. */
function cost(text: string, piece: number): Readonly<Record<"looked" | "held" | "out", number>> {
  const answer = new MarkdownStream(fakeTerminal(80, true).stream);
  let held = 0;
  let out = 0;
  for (let at = 0; at < text.length; at += piece) {
    out += answer.push(text.slice(at, at + piece)).length;
    held = Math.max(held, answer.held);
  }
  return { looked: answer.looked / text.length, held, out: (out + answer.end().length) / text.length };
}

test("whatever a reply leaves open, little is held and each character is examined only a few times", () => {
  const size = part(2 ** 18);
  const shapes = [
    "```\n",
    "```\ncode\n",
    "| a | b |\n",
    "  - a\n",
    "a",
    "`a",
    "`a*",
    "**a ",
    "**a *",
    "* ",
    "**a `b``",
    `${"**a ".repeat(490)}\n`,
    `${"`a*".repeat(660)}\n`,
    `${"**x ".repeat(300)}${"*".repeat(700)}\n`,
    `${Array.from({ length: 60 }, (_, at) => "`".repeat(at + 1)).join(" ")}\n`,
  ];
  for (const shape of shapes) {
    const text = shape.repeat(Math.ceil(size / shape.length));
    for (const piece of [3, 4000]) {
      const { looked, held, out } = cost(text, piece);
      const said = `${JSON.stringify(shape.slice(0, 20))} by ${piece}: ${looked} ${held} ${out}`;
      assert.ok(looked < 70 && held <= 4000 && out < 40, said);
    }
  }
});
