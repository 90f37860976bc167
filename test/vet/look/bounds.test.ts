// also slow: longer texts
import assert from "node:assert/strict";
import test from "node:test";
import { part } from "../../fixtures/property.ts";
import { lookedAt, type Planted } from "../../fixtures/looked-at-tree.ts";

/** Repeated beginnings of what the patterns look for: a pattern that starts again at each would take forever. */
const SEEDS =
  "( [ { curl |curl x |> |send the api key |<!--|_0x1234 |A|1,|eval(Buffer.from(|$(|base64 -d ||ignore all |style='|rm -rf -|home |sh -c $(|os.fork() |a@|- ".split(
    "|",
  );
const SIZE = part(2 ** 16);

test("texts designed to slow down a pattern are still examined", async () => {
  for (const seed of SEEDS.filter((each) => each !== "")) {
    const text = seed.repeat(Math.ceil(SIZE / seed.length)).slice(0, SIZE);
    const named = [
      "a.js",
      "AGENTS.md",
      "yarn.lock",
      "requirements.txt",
      ".npmrc",
      "Makefile",
      "pom.xml",
      ".gitmodules",
      "go.mod",
      "Gemfile.lock",
      "setup.py",
    ];
    const files: Record<string, Planted> = Object.fromEntries(named.map((name) => [name, text]));
    const looked = await lookedAt({
      ...files,
      "pnpm-lock.yaml": `packages:\n${text}`,
      "package.json": JSON.stringify({ scripts: { postinstall: "node a.js", prepare: text } }),
    });
    assert.equal(looked.files, named.length + 2, seed);
    assert.ok(looked.findings.length < 500, seed);
  }
});

test("a look ends when its time is up, and says how far it came", async () => {
  const files = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`${at}.js`, "eval(atob('eA'))"]));
  const lookedFor = async (asked: number) => {
    let left = asked;
    const { findings } = await lookedAt(files, () => (left -= 1) < 0);
    return findings.filter(({ rule }) => rule === "look.more").map(({ text }) => text);
  };
  assert.deepEqual(await lookedFor(1000), []);
  assert.deepEqual(await lookedFor(24), ["the time was up after 20 of 200 files were read"]);
  assert.deepEqual(await lookedFor(2), [
    "the time was up after 100 files and folders were found",
    "the time was up after 0 of 100 files were read",
  ]);
});
