// also slow: all cases of its properties
import assert from "node:assert/strict";
import test from "node:test";
import { anyText, fc, part } from "../../fixtures/property.ts";
import { readOwn } from "../../../src/policy/shell/commands.ts";
import type { Node, Span } from "../../../src/policy/shell/shell-syntax.ts";
import { hereDocuments, scripts, tokenSoup } from "../../fixtures/policy-scripts.ts";

const SIZE = 65_536;

/** What is repeated until it is 64 KiB. */
const HOSTILE = [
  ...'( $( ${x:- {a, {a,b} {1..64} { " \' ` [ [] [a [[: a; ~ \\ $(( <( x= (( #\n a| {} a:~ \\` $[ ! $" * ?[ a['.split(
    " ",
  ),

  "`#`",
  "`a`",
  "[[ ",
  "a ",
  "<<E ",
  "<<E\n",
  "if ",
  "! ",
  "time ",
  "{ ",
  "$'\\",
  "[[ ( ",
  "case a in a) ",
  "f() ",
  "{1..64} ",
  "{}{1..64}",
  '${x:-"',
  "function f ",
  "a\\\n",
  "<<-E $(\n",
  `{a,b}${"{}".repeat(20)} `,
  "x=~:",
  "\n",
  "<<E <<E\nE\nE\n",
  "\0",
  "\r",
  "\uD800",
  "a$(b `c`) ",
  "((1)) ",
  "${x@P}",
  "|& ",
  "a >b ",
  "$'\\x4a'",
];

test("hostile text of 64 KiB is read in time, whatever surrounds it", { timeout: 30_000 }, () => {
  for (const unit of HOSTILE) {
    const text = unit.repeat(Math.ceil(SIZE / unit.length));
    for (const around of [
      text,
      `${text}]})"\``,
      `cat <<E\n${text}\nE`,
      `a "${text}"`,
      `a \`${text}\``,
      `a $(${text})`,
    ])
      assert.ok(readOwn(around).errors.length <= 1);
  }
});

test("any text is read without an exception and with at most one error", () => {
  const any = fc.oneof(tokenSoup, anyText({ maxLength: 60 }), scripts, hereDocuments);
  fc.assert(
    fc.property(any, (text) => {
      const { errors } = readOwn(text);
      assert.ok(errors.length <= 1);
      for (const { span } of errors) assert.ok(within(span, [0, text.length]), JSON.stringify(span));
    }),
    { numRuns: part(400) },
  );
});

const within = ([start, end]: Span, [from, to]: Span): boolean => from <= start && start <= end && end <= to;

test("every word lies inside its command, and does not begin with a blank", () => {
  fc.assert(
    fc.property(scripts, (text) => {
      const { tree, errors } = readOwn(text);
      if (errors.length > 0) return;
      for (const node of nodesOf(tree)) {
        assert.ok(within(node.span, [0, text.length]));
        if (node.kind !== "simple") continue;
        for (const { span } of node.words) {
          assert.ok(within(span, node.span));
          assert.match(text.slice(...span), /^[^ \t\n]/);
        }
      }
    }),
  );
});

function nodesOf(node: Node): readonly Node[] {
  switch (node.kind) {
    case "simple":
      return [node];
    case "list":
      return [node, ...node.items.flatMap((item) => nodesOf(item.node))];
    case "pipeline":
      return [node, ...node.parts.flatMap(nodesOf)];
    case "compound":
      return [node, ...node.bodies.flatMap(nodesOf)];
    default:
      return node satisfies never;
  }
}

test("a text that ends too early is an error", () => {
  const cut = fc.tuple(scripts, fc.nat()).map(([text, at]) => text.slice(0, at % (text.length + 1)));
  fc.assert(
    fc.property(cut, (text) => {
      for (const opened of ["(", "{ ", "if a; then ", 'a "', "a '", "a $(", "a `", "a ${x:-"])
        assert.notDeepEqual(readOwn(`${opened}${text.replaceAll(/[)}"'`]|\bfi\b/g, "")}`).errors, []);
    }),
  );
});
