import assert from "node:assert/strict";
import test from "node:test";
import { hostFrom } from "../../src/app/host.ts";
import { refuseUnlessAllowed } from "../../src/app/project/policy-commands.ts";
import type { Mode, OnAsk } from "../../src/core/decision.ts";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { scratch } from "../fixtures/scratch.ts";

const RUNS = "it runs";

async function refusal(
  words: readonly string[],
  mode: Mode = "workspace-write",
  allow_domains: string[] = [],
  on_ask: OnAsk = "contained",
): Promise<string> {
  await using place = await scratch({ ".harnessignore": "hidden/\n", "node_modules/.bin/tsc": "" });
  try {
    const folder = { workspace: place.path, cwd: place.path };
    await refuseUnlessAllowed(hostFrom(process.env), words, { mode, allow_domains, on_ask }, folder);
    return RUNS;
  } catch (thrown) {
    assert.ok(thrown instanceof HarnessError && thrown.exit === EXIT.refused);
    return `${thrown.message}; ${thrown.remedy.replace(place.path, "FOLDER")}`;
  }
}

const HIDDEN = ".harnessignore keeps hidden/x from being read";

for (const [words, told] of [
  [["ls"], RUNS],
  [["mkdir", "x"], RUNS],
  [["npx", "tsc", "--noEmit"], RUNS],
  [
    ["cat", "hidden/x"],
    `denied: ${HIDDEN} (read.ignored); remove it from .harnessignore yourself, if it may be read`,
  ],
  [
    ["bash", "-c", "mkdir x; pkill y"],
    "nobody is there to ask: pkill acts on other processes (process); harness policy check --explain --mode workspace-write --cwd FOLDER -- \"bash -c 'mkdir x; pkill y'\"",
  ],
  [["a\nallow  b"], RUNS],
  [
    ["a\nallow  b", ".env"],
    "nobody is there to ask: a␊allow  b is not a known program (command.unknown); use a known program, or allow it by a rule of your own: harness policy allow",
  ],
] as const)
  test(`${JSON.stringify(words)} with nobody there: ${told}`, async () => {
    assert.equal(await refusal(words), told);
  });

test("an unknown program is refused as soon as a host is granted", async () => {
  assert.equal(await refusal(["mytool", "x"]), RUNS);
  assert.match(
    await refusal(["mytool", "x"], "workspace-write", ["example.org"]),
    /mytool is not a known program/,
  );
});

test("in read-only mode what requires confirmation is refused, contained or not", async () => {
  assert.match(await refusal(["mkdir", "x"], "read-only"), /^nobody is there to ask: mkdir writes x /);
});

test("npx of a package that is not installed counts as an installation", async () => {
  assert.match(await refusal(["npx", "cowsay"]), /^nobody is there to ask: npx installs packages/);
});

test("with on_ask refuse, what requires confirmation is refused, contained or not", async () => {
  assert.equal(await refusal(["ls"], "workspace-write", [], "refuse"), RUNS);
  assert.match(
    await refusal(["mkdir", "x"], "workspace-write", [], "refuse"),
    /^nobody is there to ask: mkdir writes x /,
  );
  assert.equal(await refusal(["mkdir", "x"], "workspace-write", [], "park"), RUNS);
});
