import assert from "node:assert/strict";
import { globSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { CHUNKS } from "../../bin/chunks.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const FILES = globSync(["src/**/*.ts", "package.json"], { cwd: ROOT }).map(
  (file) => `/${file.replaceAll(path.sep, "/")}`,
);

/** A pattern's alternatives: one pattern for each path that it names. */
function placesIn({ source }: RegExp): readonly RegExp[] {
  const from = source.search(/\(\?:/);
  if (from === -1) return [new RegExp(source)];
  for (let at = from, depth = 0, start = from + 3, found: string[] = []; at < source.length; at += 1) {
    const sign = source[at];
    if (sign === "\\") at += 1;
    else if (sign === "(") depth += 1;
    else if (sign === "|" && depth === 1) {
      found = [...found, source.slice(start, at)];
      start = at + 1;
    } else if (sign === ")" && (depth -= 1) === 0) {
      const [before, after] = [source.slice(0, from), source.slice(at + 1)];
      return [...found, source.slice(start, at)].flatMap((one) => placesIn(new RegExp(before + one + after)));
    }
  }
  throw new Error(`${source} has no end`);
}

test("every path that the table of shared bundle files names exists", () => {
  const all = CHUNKS.flatMap(({ name, of }) => of.flatMap(placesIn).map((place) => ({ name, place })));
  assert.ok(all.length > 40, `${all.length} places are few`);
  assert.deepEqual(
    all
      .filter(
        ({ place }) => !place.source.includes("node_modules") && !FILES.some((file) => place.test(file)),
      )
      .map(({ name, place }) => `${name}: ${place.source}`),
    [],
  );
});
