import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { RUN_RULES } from "../../../src/vet/act-rules.ts";
import { ARCHIVE_RULES, archiveFindings, isWhole, type Unpacked } from "../../../src/vet/look/archives.ts";

const told = (more: Partial<Unpacked>): Unpacked => ({
  entries: 3,
  bytes: 1000,
  packed: 900,
  stopped: null,
  left_out: [],
  ...more,
});

const rules = (more: Partial<Unpacked>): readonly string[] =>
  archiveFindings(told(more)).map(({ rule, weight }) => `${rule} ${weight}`);

test("the rating of an archive follows from how its unpacking ended", () => {
  assert.deepEqual(rules({}), []);
  assert.deepEqual(rules({ stopped: "bytes", bytes: 2 ** 30 }), ["unpack.bomb hostile"]);
  assert.deepEqual(rules({ stopped: "bytes", bytes: 2 ** 30, packed: 2 ** 29 }), ["unpack.large noisy"]);
  assert.deepEqual(rules({ stopped: "entries" }), ["unpack.bomb hostile"]);
  assert.deepEqual(rules({ stopped: "broken" }), ["unpack.broken noisy"]);
  assert.deepEqual(
    rules({
      left_out: [
        ["../a", "outside"],
        ["b", "twice"],
        ["c", "something"],
      ],
    }),
    ["unpack.outside hostile", "unpack.twice noisy", "unpack.odd noisy"],
  );
  assert.deepEqual(
    [null, "broken", "bytes", "time"].map((stopped) =>
      isWhole(told({ stopped: stopped as Unpacked["stopped"] })),
    ),
    [true, true, false, false],
  );
});

test("an entry's name cannot act on a terminal", () => {
  const [one] = archiveFindings(told({ left_out: [["\u001B[2J../a", "outside"]] }));
  assert.equal(one?.path, "␛[2J../a");
});

test("docs/untrusted.md lists each rule of archives and of commands with its weight and words", () => {
  const doc = readFileSync(path.join(import.meta.dirname, "../../../docs/untrusted.md"), "utf8");
  const rows = new Set(
    [...doc.matchAll(/^\| `((?:run|unpack)\.[\w-]+)`\s*\| (\w+)\s*\| (.+?)\s*\|$/gm)].map(([, ...cells]) =>
      cells.join(" | "),
    ),
  );
  const wanted = Object.entries({ ...ARCHIVE_RULES, ...RUN_RULES }).map(
    ([id, { weight, words }]) => `${id} | ${weight} | ${words}`,
  );
  assert.deepEqual(
    [...rows].toSorted((a, b) => a.localeCompare(b)),
    wanted.toSorted((a, b) => a.localeCompare(b)),
  );
});
