import assert from "node:assert/strict";
import test from "node:test";
import { COUNTS, counted, type Figure, inTurn, measureFigure, paired } from "../../bench/figure.ts";
import { FIGURES } from "../../bench/figures.ts";
import { textOf } from "./docs-lines.ts";

/** The bounds of `npm run bench` are valid on any machine: ratios to something measured in the same run. */

test("every figure has a unique name, a bound and a description of its baseline", () => {
  assert.ok(FIGURES.length > 40);
  assert.equal(new Set(FIGURES.map(({ name }) => name)).size, FIGURES.length);
  for (const { name, against, hold } of FIGURES) {
    assert.ok(against.length > 5, name);
    assert.doesNotMatch(against, /\d+ ?(?:ms|us|s|MB|MiB)\b/, name);
    assert.ok(hold > 0 && hold <= 100, name);
  }
});

const figure = (unit: string, measure: Figure["measure"]): Figure => ({
  name: "a",
  unit,
  against: "b",
  hold: 1,
  measure,
});

const held = (): ReturnType<Figure["measure"]> => Promise.resolve(counted(4, 5));
const five = (): ReturnType<Figure["measure"]> =>
  Promise.resolve(paired([10, 20, 60, 20, 20], [10, 10, 10, 20, 5]));

test("only counts are held to a number; a time or a size needs a measured baseline", async () => {
  for (const unit of COUNTS) assert.equal((await measureFigure(figure(unit, held))).ok, true);
  for (const unit of ["us", "ms", "MB", "MiB"])
    await assert.rejects(measureFigure(figure(unit, held)), /against nothing that was measured/);
});

test("a baseline that never varies is refused as not measured", async () => {
  const numbers = [3, 4, 5, 6, 7];
  const next = (): Promise<number> => Promise.resolve(numbers.shift() ?? 9);
  await assert.rejects(
    inTurn(3, next, () => Promise.resolve(40)),
    /always 40/,
  );
  assert.throws(() => paired([1, 2, 3], [5, 5, 5]), /always 5/);
  assert.throws(() => paired([1, 2], [5, 6]), /2 values/);
});

test("a figure is the ratio of the medians, with the quartiles of the pairs' ratios", async () => {
  const line = await measureFigure({ ...figure("ms", five), hold: 1.9 });
  assert.deepEqual(
    [line.value, line.baseline, line.ratio, line.spread, line.pairs, line.ok],
    [20, 10, 2, [1, 4], 5, false],
  );
  assert.equal((await measureFigure({ ...figure("ms", five), hold: 2 })).ok, true);
});

/** Rows of the README whose last cell names figures: `name` and its bound. */
const shownHolds = (text: string): readonly (readonly [name: string, hold: number])[] =>
  [...text.matchAll(/^\|.*\|([^|]*`[a-z]+\.[^|]*)\|$/gm)].flatMap(([, cell = ""]) =>
    [...cell.matchAll(/`([\w.-]+)` <= ([\d.]+)/g)].map(
      ([, name = "", hold]) => [name, Number(hold)] as const,
    ),
  );

test("the bounds in the README are those of the figures", () => {
  const shown = shownHolds(textOf("README.md"));
  assert.ok(shown.length >= 18, String(shown.length));
  const holds = new Map(FIGURES.map(({ name, hold }) => [name, hold]));
  assert.deepEqual(
    shown,
    shown.map(([name]) => [name, holds.get(name)]),
  );
  assert.deepEqual(shownHolds("| a | 2 x | `a.b` <= 3 x, `a.c-d` <= 0.5 x |"), [
    ["a.b", 3],
    ["a.c-d", 0.5],
  ]);
});
