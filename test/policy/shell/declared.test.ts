/** Compares the second reader with bash's printout of a function, which is bash's own tree as text. Nothing of it is run. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import test from "node:test";
import { fc, many } from "../../fixtures/property.ts";
import { readOwn } from "../../../src/policy/shell/commands.ts";
import type {
  Compound,
  List,
  Node,
  WordPiece,
  ShellReading,
  Redirect,
  Word,
} from "../../../src/policy/shell/shell-syntax.ts";
import { hereDocuments, scripts, tokenSoup } from "../../fixtures/policy-scripts.ts";
import { show } from "../../fixtures/policy-tree.ts";

const SEED = 5;

const DECLARE =
  'while IFS= read -r -d "" text; do unset -f f; eval "$text"; declare -f f; printf "\\0"; done';

/** The functions as bash prints them. A text with more than one function would run in a shell without any rights. */
function declared(texts: readonly string[]): readonly string[] | null {
  const { stdout, error } = spawnSync("/bin/bash", ["--noprofile", "--norc", "--restricted", "-c", DECLARE], {
    input: texts.map((text) => `${text}\0`).join(""),
    encoding: "utf8",
    cwd: "/",
    env: { PATH: "/nowhere", LC_ALL: "C.UTF-8" },
    maxBuffer: 1e8,
    timeout: 20_000,
  });
  return error === undefined ? stdout.split("\0").slice(0, -1) : null;
}

/** Normalises what bash prints differently: `elif`, the list of `for x;`, default descriptors, `$"…"`. */
function normal(node: Node): Node {
  switch (node.kind) {
    case "list":
      return normalList(node);
    case "pipeline":
      return { ...node, parts: node.parts.map(normal) };
    case "simple": {
      const assignments = node.assignments.map((one) => ({
        ...one,
        value: one.value && normalWord(one.value),
      }));
      return {
        ...node,
        assignments,
        words: node.words.map(normalWord),
        redirects: node.redirects.map(normalRedirect),
      };
    }
    case "compound":
      return normalCompound(node);
    default:
      return node satisfies never;
  }
}

function normalList(list: List): List {
  return { ...list, items: list.items.map((item) => ({ ...item, node: normal(item.node) })) };
}

const ARGUMENTS: Word = { span: [0, 0], pieces: [{ kind: "variable", name: "@", quoted: true }] };

function normalCompound(node: Compound): Compound {
  const { what, bodies, name, span } = node;
  const [condition, then, ...more] = bodies;
  const redirects = node.redirects.map(normalRedirect);
  if (what === "if" && condition !== undefined && then !== undefined && more.length > 1) {
    const inner = normalCompound({ ...node, bodies: more, redirects: [] });
    const otherwise: List = { kind: "list", span, items: [{ node: inner, then: ";" }] };
    return { ...node, redirects, bodies: [normal(condition), normal(then), otherwise] };
  }
  const words = what === "for" && name !== null ? (node.words ?? [ARGUMENTS]) : node.words;
  return { ...node, redirects, bodies: bodies.map(normal), words: words?.map(normalWord) ?? null };
}

function normalRedirect(redirect: Redirect): Redirect {
  const usual = redirect.operator.startsWith("<") ? 0 : 1;
  const descriptor = redirect.descriptor === usual ? null : redirect.descriptor;
  return { ...redirect, descriptor, target: normalWord(redirect.target) };
}

function normalWord(word: Word): Word {
  return { ...word, pieces: word.pieces.map(normalPiece) };
}

function normalPiece(piece: WordPiece): WordPiece {
  if (piece.kind === "script") return { ...piece, body: normal(piece.body) };
  if (piece.kind === "unknown") return { ...piece, scripts: piece.scripts.map(normal) };
  return piece;
}

const shown = ({ tree, errors }: ShellReading): string => show({ tree: normalList(tree), errors });

/** Compares each text that is read with what bash prints of it. */
function compare(bodies: readonly string[], context: { skip: (why: string) => void }): void {
  const texts = bodies.map((body) => `f() {\n${body}\n}`).filter((text) => readOwn(text).errors.length === 0);
  const answers = declared(texts);
  if (answers === null) return context.skip("there is no bash here");
  assert.ok(texts.length > 100, `${texts.length}`);
  for (const [at, text] of texts.entries())
    assert.deepEqual({ text, tree: shown(readOwn(answers[at] ?? "")) }, { text, tree: shown(readOwn(text)) });
}

test("scripts of every construct get the tree that bash prints", (context) => {
  // Bash prints it as a plain string.
  const texts = fc
    .sample(scripts, { numRuns: many(300), seed: SEED })
    .map((text) => text.replaceAll('$"loc"', '"loc"'));
  compare(texts, context);
});

test("here-documents get the tree that bash prints", (context) => {
  compare(fc.sample(hereDocuments, { numRuns: many(250), seed: SEED }), context);
});

/** Redirects before a word, which bash prints after it: then the word may be a reserved one. */
const MOVED = /[<>].*(?:time|!|in|then|do|until|while|select|\bfi|\bif|\bfor)/;

test("random tokens that can be read get the tree that bash prints", (context) => {
  const texts = fc.sample(tokenSoup, { numRuns: many(2000), seed: SEED });
  compare(
    texts.filter((text) => !text.includes('$"') && !MOVED.test(text)),
    context,
  );
});
