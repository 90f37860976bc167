import assert from "node:assert/strict";
import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { harness, type Said, startModel } from "./run-command.ts";
import { lastResult } from "./run-requests.ts";

const DONE: Said = { text: "done" };
const SHOW: Said = { calls: [["bash", { command: "cat a.txt" }]] };
const FILES = { "a.txt": "a\n" };

test("the run's own environment variables reach neither the box nor anything stored", { skip }, async () => {
  await using place = await household({ "a.txt": "a\n" });
  const key = "KUMQUAT-KEY-IN-ENVIRONMENT";
  await using model = await startModel([
    { calls: [["bash", { command: "env; cat a.txt" }]] },
    { text: "done" },
  ]);
  const env = { OPENAI_API_KEY: key, MY_PASSWORD: key };
  const ran = await harness(place, ["run", "--json", ...model.flags, "show the environment"], { env });
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(lastResult(model.asked()), /PATH=[^]*^a$/m);
  assert.ok(!JSON.stringify(model.asked()).includes(key));
  for (const file of await filesBelow(place.at(".local/state")))
    assert.ok(!(await readFile(file)).includes(key), file);
});

test("everything stored about a run is accessible only to its user", { skip }, async () => {
  await using place = await household(FILES);
  await using model = await startModel([SHOW, DONE]);
  await harness(place, ["run", ...model.flags, "show the settings"]);
  const kept = await filesBelow(place.at(".local/state/harness"));
  assert.ok(kept.length > 0);
  const top = await stat(place.at(".local/state/harness"));
  assert.equal(top.mode & 0o077, 0);
});

async function filesBelow(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
}
