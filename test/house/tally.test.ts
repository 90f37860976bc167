import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { scratch } from "../fixtures/scratch.ts";
import { repository, run } from "./plant.ts";

const TALLY = JSON.stringify(pathToFileURL(path.join(repository, "test/house/tally.ts")).href);

/** The report of a run of a test file with this text and the time limit `mostMs`; this process may not run tests itself. */
async function told(text: string, mostMs: number): Promise<string> {
  await using place = await scratch({
    "one.test.mjs": `import test from "node:test";\n${text}\n`,
    "run.mjs": `import { runFile, Tally } from ${TALLY};
      delete process.env.NODE_TEST_CONTEXT;
      const tally = new Tally();
      await runFile(process.argv[2], tally, { mostMs: ${mostMs} });
      await tally.print();
      console.log(tally.green ? "green" : "red");`,
  });
  return (await run(process.execPath, [place.at("run.mjs"), place.at("one.test.mjs")], place.path)).stdout;
}

const NEVER = 600_000;

test("a file that ends is green, and its tests are counted once", async () => {
  const text = 'test("one", () => {}); test("two", () => {});';
  assert.match(await told(text, NEVER), /\n2 tests, 0 failed, 0 skipped\ngreen\n$/);
});

test("a failed test is red, and reported", async () => {
  const said = await told('test("one", () => { throw new Error("broken"); });', NEVER);
  assert.match(
    said,
    /\n✖ one\n {2}.*one\.test\.mjs\nError: broken\n[^]*\n1 tests, 1 failed, 0 skipped\nred\n$/,
  );
});

for (const [what, text] of [
  ["a test never ends", 'test("waits", () => new Promise(() => setInterval(() => {}, 1000)));'],
  ["something stays open after its tests", 'test("done", () => void setInterval(() => {}, 1000));'],
  ["a test computes for ever", 'test("spins", () => { for (;;); });'],
] as const)
  test(`a file is ended, red and named when ${what}`, async () => {
    assert.match(
      await told(text, 3000),
      /\n✖ .*one\.test\.mjs\n {2}ended after 0\.05 minutes: .*\n\n\d tests, 1 failed, 0 skipped\nred\n$/,
    );
  });

for (const [what, text] of [
  [
    "a promise that nobody awaits is rejected",
    'test("one", () => void Promise.reject(new Error("broken")));',
  ],
  [
    "a timer that was set after an await throws",
    `import { readFile } from "node:fs/promises";
    test("one", async () => {
      await readFile(process.argv[1]);
      await new Promise((done) => setTimeout(() => { setTimeout(done, 100); throw new Error("broken"); }));
    });`,
  ],
] as const)
  test(`a file is red when ${what}`, async () => {
    const said = await told(text, NEVER);
    assert.match(said, /one\.test\.mjs[^]*\n✖ [^]*, [1-9]\d* failed, 0 skipped\nred\n$/);
    assert.match(said, /Error: broken\n/);
  });
