import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import { hostFrom } from "../../../src/app/host.ts";
import { modelClient } from "../../../src/app/model-access.ts";
import { readOutputSchema } from "../../../src/app/run/output-schema.ts";
import { DEFAULTS } from "../../../src/config/settings-schema.ts";
import type { ProviderEvent } from "../../../src/core/model-provider.ts";
import { readScenario } from "../../../src/models/providers/scenario.ts";
import { refusalOf } from "../../fixtures/refusal.ts";
import { scratch } from "../../fixtures/scratch.ts";

const IS_FILE = /: it is not a file/;

test("a schema or scenario that is a pipe or device is refused at once, and a link to a file is read", async () => {
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

test("a schema or scenario may begin with the byte order mark of an editor", async () => {
  await using place = await scratch({
    "schema.json": '\uFEFF{"type":"object"}',
    "model.jsonl": '\uFEFF{"reply":["hi"]}\r\n',
  });
  assert.deepEqual((await readOutputSchema(place.at("schema.json"))).schema, { type: "object" });
  assert.equal(readScenario(place.at("model.jsonl")).steps.length, 1);
});

/** A pair of a number and anything else, as each draft says it: what is meant otherwise in another one. */
const PAIRS: Readonly<Record<string, object>> = {
  "http://json-schema.org/draft-06/schema#": { items: [{ type: "number" }], additionalItems: false },
  "http://json-schema.org/draft-07/schema#": { items: [{ type: "number" }], additionalItems: false },
  "https://json-schema.org/draft/2019-09/schema": { items: [{ type: "number" }], additionalItems: false },
  "https://json-schema.org/draft/2020-12/schema": { prefixItems: [{ type: "number" }], items: false },
};

for (const [$schema, pair] of Object.entries(PAIRS))
  test(`a schema is read by the draft it declares, ${$schema}`, async () => {
    await using place = await scratch({
      "schema.json": JSON.stringify({ $schema, type: "array", ...pair }),
    });
    const { schema, check } = await readOutputSchema(place.at("schema.json"));
    assert.equal(schema["$schema"], $schema, "the model is told all of it");
    assert.deepEqual(check("[1]"), { json: "[1]" });
    for (const wrong of ["[1, 2]", '["1"]', "{}"]) assert.ok("issues" in check(wrong), wrong);
  });

test("an invalid schema, or one that accepts any answer, is refused with the reason", async () => {
  const broken: Readonly<Record<string, readonly [text: string, why: RegExp]>> = {
    "asynchronous.json": ['{"$async": true, "type": "object"}', /uses \$async/],
    "older.json": [
      '{"$schema": "http://json-schema.org/draft-04/schema#"}',
      /uses an unknown draft: "http:\/\/json-schema\.org\/draft-04/,
    ],
    "number.json": ['{"$schema": 7}', /uses an unknown draft: 7/],
    "type.json": ['{"type": "objekt"}', /is not a valid JSON Schema: /],
  };
  await using place = await scratch(
    Object.fromEntries(Object.entries(broken).map(([n, [text]]) => [n, text])),
  );
  for (const [file, [, why]] of Object.entries(broken)) {
    const [exit, message] = await refusalOf(() => readOutputSchema(place.at(file)));
    assert.equal(exit, 2);
    assert.match(message, why);
  }
});

test("an unreadable scenario is reported as a missing model", async () => {
  await using place = await scratch({ "broken.jsonl": "{" });
  const host = hostFrom({ HOME: place.path });
  for (const [name, why] of [
    ["none.jsonl", /cannot read the scenario/],
    ["broken.jsonl", /broken\.jsonl:1: /],
  ] as const) {
    const model = place.at(name);
    const client = modelClient(host, { ...DEFAULTS, provider: "scripted", chat_model: model });
    const { signal } = new AbortController();
    assert.equal((await client.capabilities(model, signal)).origin.context, "table");
    const request = { model, messages: [{ role: "user", text: "hi" }], tools: [] } as const;
    const events: ProviderEvent[] = [];
    for await (const event of client.provider().stream(request, signal)) events.push(event);
    const last = events.at(-1);
    assert.ok(last?.type === "failed", JSON.stringify(last));
    assert.equal(last.failure.kind, "no_model");
    assert.match(last.failure.reason, why);
  }
});
