import assert from "node:assert/strict";
import test from "node:test";
import { fitsWildcard, readWildcard } from "../../src/core/wording.ts";
import { fc } from "../fixtures/property.ts";
import { mayFit, readPathPattern, surelyFits } from "../../src/policy/paths/path-pattern.ts";
import { AROUND } from "./judged.ts";

test("a star matches any text", () => {
  const rows = [
    ["a", "a", true],
    ["a", "ab", false],
    ["a*", "a", true],
    ["a*b", "ab", true],
    ["a*b", "a", false],
    ["ab*ba", "aba", false],
    ["*a*", "xay", true],
    ["a*b*c", "abbc", true],
    ["a*c*b", "acb", true],
    ["a*bc*c", "abc", false],
  ] as const;
  assert.deepEqual(
    rows.map(([pattern, text]) => [pattern, text, fitsWildcard(readWildcard(pattern), text)]),
    rows,
  );
});

test("a pattern with stars matches like the corresponding regular expression", () => {
  const piece = fc.string({ unit: fc.constantFrom("a", "b", "*"), maxLength: 6 });
  fc.assert(
    fc.property(piece, fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 8 }), (pattern, text) => {
      const expected = new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(text);
      assert.equal(fitsWildcard(readWildcard(pattern), text), expected);
    }),
  );
});

test("a path matches a pattern surely, perhaps, or not", () => {
  const rows: readonly (readonly [pattern: string, path: string, surely: boolean, perhaps: boolean])[] = [
    ["src/**", "/home/dev/project/src", true, true],
    ["src/**", "/home/dev/project/src/a/b", true, true],
    ["src/", "/home/dev/project/src/a/b", true, true],
    ["./src/*", "/home/dev/project/src/a", true, true],
    ["src/*", "/home/dev/project/src/a/b", false, false],
    ["src/**", "/home/dev/project/SRC/a", false, true],
    ["src/**", "/home/dev/project/source", false, false],
    ["src/**", "/src/a", false, false],
    ["**/*.md", "/home/dev/project/a/b/c.md", true, true],
    ["**/*.md", "/home/dev/project/c.md", true, true],
    ["a/**/b/**/c", "/home/dev/project/a/x/b/y/z/c", true, true],
    ["a/**/b/**/c", "/home/dev/project/a/x/b/y/z", false, false],
    ["~/x", "/home/dev/x", true, true],
    ["/etc/hosts", "/etc/hosts", true, true],
    ["src/**", "/home/dev/project/src/*", true, true],
    ["src/*.ts", "/home/dev/project/src/*", false, true],
    ["src/**", "/home/dev/project/s*/a", false, true],
    ["src/a*/**", "/home/dev/project/src/*/b", false, true],
  ];
  assert.deepEqual(
    rows.map(([text, path]) => {
      const pattern = readPathPattern(text);
      assert.ok(pattern);
      return [
        text,
        path,
        surelyFits(pattern, path, AROUND),
        mayFit(pattern, path, { whole: false, around: AROUND }),
      ];
    }),
    rows,
  );
});

test("a change of a whole tree also affects the paths in it", () => {
  const pattern = readPathPattern("keep/a/*.txt");
  assert.ok(pattern);
  const rows = [
    ["/home/dev/project/keep", true],
    ["/home/dev", true],
    ["/", true],
    ["/home/dev/project/src", false],
  ] as const;
  assert.deepEqual(
    rows.map(([path]) => [path, mayFit(pattern, path, { whole: true, around: AROUND })]),
    rows,
  );
});
