// also slow: all cases of its properties
/** Compares the second reader with bash itself. Only `printf` is run, with words without expansions. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import test from "node:test";
import { fc, part } from "../../fixtures/property.ts";
import { readOwn } from "../../../src/policy/shell/commands.ts";
import type { Word } from "../../../src/policy/shell/shell-syntax.ts";
import { hereDocuments, plainWords, scripts, tokenSoup } from "../../fixtures/policy-scripts.ts";

const SEED = 11;

/** Gives texts to one bash that runs `script`, which answers each with a line that ends with NUL. */
function ask(script: string, texts: readonly string[]): readonly string[] {
  const { stdout } = spawnSync("bash", ["--noprofile", "--norc", "-c", script], {
    input: texts.map((text) => `${text}\0`).join(""),
    encoding: "utf8",
    env: { PATH: process.env["PATH"], HOME: "/home/dev", LC_ALL: "C.UTF-8" },
    maxBuffer: 1e8,
  });
  return stdout.split("\0").slice(0, -1);
}

const [version = ""] = ask('while read -r -d "" text; do printf "%s\\0" "$BASH_VERSINFO"; done', [""]);
const skip = Number(version) >= 5 ? false : "there is no bash 5 here";

const REFUSED =
  'while IFS= read -r -d "" text; do printf "%s\\0" "$(bash --noprofile --norc -n -c -- "$text" 2>&1 || echo " bad")"; done';

const SCRIPTS = fc.sample(scripts, { numRuns: 300, seed: SEED });

test("text that bash refuses is an error here, and most text that bash reads is read here", { skip }, () => {
  const texts = [
    ...SCRIPTS,
    ...fc.sample(tokenSoup, { numRuns: part(300), seed: SEED }),
    ...fc.sample(hereDocuments, { numRuns: 60, seed: SEED }),
  ];
  const answers = ask(REFUSED, texts);
  assert.equal(answers.length, texts.length);
  const isRead = texts.map((text) => readOwn(text).errors.length === 0);
  assert.deepEqual(
    texts.filter((_, at) => answers[at] !== "" && isRead[at]),
    [],
  );
  const good = SCRIPTS.map((_, at) => at).filter((at) => answers[at] === "");
  const read = good.filter((at) => isRead[at]);
  assert.ok(good.length > 100 && read.length > good.length * 0.8, `${read.length} of ${good.length}`);
});

const VALUES = `set -f
values() { (($# == 0)) || printf '%s\\37' "$@"; }
while IFS= read -r -d "" text; do eval "values $text" 2>&1; printf '\\0'; done`;

/** The words as bash passes them on; null when their values are not in the text. */
function valuesOf(text: string): readonly string[] | null {
  const { tree, errors } = readOwn(`values ${text}`);
  const [item, more] = tree.items;
  if (errors.length > 0 || more !== undefined || item?.node.kind !== "simple") return null;
  const values = item.node.words.slice(1).map(valueOf);
  return values.every((value) => value !== null) ? values : null;
}

function valueOf({ pieces }: Word): string | null {
  let value = "";
  for (const piece of pieces)
    if (piece.kind === "text" || piece.kind === "glob") value += piece.text;
    else if (piece.kind === "home") value += "/home/dev";
    else return null;
  return value;
}

test("words have the values that bash passes to a program", { skip }, () => {
  const texts = fc
    .sample(plainWords, { numRuns: part(4000), seed: SEED })
    .filter((text) => valuesOf(text) !== null);
  const answers = ask(VALUES, texts);
  assert.ok(texts.length > part(1500), `${texts.length}`);
  for (const [at, text] of texts.entries())
    assert.deepEqual(
      { text, values: answers[at]?.split("\x1F").slice(0, -1) },
      { text, values: valuesOf(text) },
    );
});

test("here-documents have the text that bash passes to a program", { skip }, () => {
  const bodies = [
    "",
    "x\n",
    "\tx\n\t\ty\n",
    "a\\\nb\n",
    '\\$x \\` \\" \\\\ \\q\n',
    "\"q\" 'r' $ {a,b} ~ *\n",
    "a\\\\\nb\n",
    " E\n",
  ];
  const texts = ["<<E", "<<'E'", "<<\\E", "<<-E", '<<-"E"'].flatMap((operator) =>
    bodies.map((body) => `${operator}\n${body}E\n`),
  );
  const answers = ask(`while IFS= read -r -d "" text; do eval "cat $text" 2>&1; printf '\\0'; done`, texts);
  for (const [at, text] of texts.entries()) {
    const { tree, errors } = readOwn(`cat ${text}`);
    const node = tree.items[0]?.node;
    const target = node?.kind === "simple" ? node.redirects[0]?.target : undefined;
    assert.deepEqual(
      { text, errors, body: target && valueOf(target) },
      { text, errors: [], body: answers[at] },
    );
  }
});
