import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { isInside } from "../../../src/core/file-names.ts";
import { fc } from "../../fixtures/property.ts";
import { resolvePath } from "../../../src/policy/paths/normal-path.ts";

for (const [from, given, wanted] of [
  ["/w", "a", "/w/a"],
  ["/w", "", "/w"],
  ["/w/", "./a//b/", "/w/a/b"],
  ["/w", "a/./b/../c", "/w/a/c"],
  ["/w", "../../..", "/"],
  ["/w", "/../../etc//passwd/", "/etc/passwd"],
  ["/w", "//etc/passwd", "/etc/passwd"],
  ["/w", "...", "/w/..."],
  ["/w", "~", "/w/~"],
  ["w", "a", "/w/a"],
  ["/w", "/proc/self/root/etc/shadow", "/etc/shadow"],
  ["/w", "/proc/1/root/etc/shadow", "/etc/shadow"],
  ["/w", "/proc/self/root/../x", "/x"],
  ["/w", "/proc/self/cwd/a", "/w/a"],
  ["/w/b", "/proc/thread-self/cwd/../a", "/w/a"],
  ["/w", "/proc/self/task/12/root/x", "/x"],
  ["/w", "/proc/self/task/12/cwd/x", "/w/x"],
  ["/w", "/proc/self/root/proc/self/cwd/x", "/w/x"],
  ["/w", "/proc/12/cwd/a", "/proc/12/cwd/a"],
  ["/w", "../proc/self/root/x", "/x"],
  ["/w", "/proc/self/environ", "/proc/self/environ"],
  ["/w", "/proc/selfish/root/x", "/proc/selfish/root/x"],
  ["/w", "/x/proc/self/root/y", "/x/proc/self/root/y"],
] as const)
  test(`${JSON.stringify(given)} from ${from} is ${wanted}`, () => {
    assert.equal(resolvePath(from, given), wanted);
  });

test("outside /proc a path is resolved as the standard library does", () => {
  const name = fc.constantFrom("a", "b", ".", "..", "", "c.d", "...");
  fc.assert(
    fc.property(fc.array(name), fc.array(name), (from, given) => {
      const [folder, text] = [`/${from.join("/")}`, given.join("/")];
      assert.equal(resolvePath(folder, text), path.posix.resolve(folder, text));
    }),
  );
});

for (const [folder, inside, is] of [
  ["/w", "/w", true],
  ["/w", "/w/a", true],
  ["/w", "/wa", false],
  ["/w", "/", false],
  ["/", "/", true],
  ["/", "/a", true],
] as const)
  test(`${inside} is ${is ? "" : "not "}inside ${folder}`, () => {
    assert.equal(isInside(folder, inside), is);
  });
