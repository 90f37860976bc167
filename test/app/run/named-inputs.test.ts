import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import { readOutputSchema } from "../../../src/app/run/output-schema.ts";
import { readScenario } from "../../../src/models/providers/scenario.ts";
import { scratch } from "../../fixtures/scratch.ts";

const IS_FILE = /: it is not a file/;

test("a schema or a scenario that is a pipe or a device is refused at once, a link to a file is read", async () => {
  await using place = await scratch({
    "schema.json": '{"type":"object"}',
    "model.jsonl": '{"reply":["hi"]}\n',
  });
  execFileSync("mkfifo", [place.at("pipe")]);
  execFileSync("ln", ["-s", "schema.json", place.at("linked.json")]);
  for (const file of [place.at("pipe"), "/dev/zero", place.path]) {
    await assert.rejects(readOutputSchema(file), IS_FILE, file);
    assert.throws(() => readScenario(file), IS_FILE, file);
  }
  assert.deepEqual((await readOutputSchema(place.at("linked.json"))).schema, { type: "object" });
  assert.equal(readScenario(place.at("model.jsonl")).steps.length, 1);
});
