import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { ROOT } from "./package.ts";
import { eventsOf, finishedOf, harness, type Said, startModel } from "./run-command.ts";
import { assertValid } from "./run-requests.ts";

const SCHEMA = {
  type: "object",
  properties: { lines: { type: "integer" }, file: { type: "string" } },
  required: ["lines", "file"],
  additionalProperties: false,
};
const FILES = { "schema.json": JSON.stringify(SCHEMA), "a.txt": "a\n" };
const FITS = '{"lines":1,"file":"a.txt"}';
const COUNT: Said = { calls: [["bash", { command: "wc -l a.txt" }]] };

for (const [what, text] of [
  ["valid", FITS],
  ["fenced", `\`\`\`json\n${JSON.stringify(JSON.parse(FITS), null, 2)}\n\`\`\``],
] as const)
  test(`an answer that is ${what} leaves stdout with exactly the JSON`, { skip }, async () => {
    await using place = await household(FILES);
    await using model = await startModel([COUNT, { text }]);
    const ran = await harness(place, ["run", "--output-schema", "schema.json", ...model.flags, "count"]);
    assert.deepEqual([ran.code, ran.stdout], [0, `${FITS}\n`], ran.stderr);
    assert.equal(model.asked().length, 2);
  });

test(
  "an answer that does not fit the schema is corrected by the model once it is told what is wrong",
  { skip },
  async () => {
    await using place = await household(FILES);
    await using model = await startModel([
      COUNT,
      { text: "There is one line." },
      { text: '{"lines":"1"}' },
      { text: FITS },
    ]);
    const ran = await harness(place, ["run", "--output-schema", "schema.json", ...model.flags, "count"]);
    assert.deepEqual([ran.code, ran.stdout], [0, `${FITS}\n`], ran.stderr);
    const told = model.asked().at(-1)?.messages.at(-1);
    assert.equal(told?.role, "user");
    assert.match(told?.content ?? "", /\/lines must be integer|required property 'file'/);
    assertValid(model.asked());
  },
);

test("an answer that never fits ends with 1 and an empty stdout", { skip }, async () => {
  await using place = await household(FILES);
  await using model = await startModel([COUNT, { text: "one" }]);
  const ran = await harness(place, ["run", "--output-schema", "schema.json", ...model.flags, "count"]);
  assert.deepEqual([ran.code, ran.stdout], [1, ""], ran.stderr);
  assert.match(ran.stderr, /does not fit the output schema/);
});

test("an invalid schema ends with 2 before the model is asked", { skip }, async () => {
  await using place = await household({ "schema.json": '{"type": 5}', "list.json": "[]" });
  for (const file of ["schema.json", "list.json"]) {
    await using model = await startModel([COUNT]);
    const ran = await harness(place, ["run", "--output-schema", file, ...model.flags, "count"]);
    assert.deepEqual([ran.code, ran.stdout, model.asked().length], [2, "", 0], ran.stderr);
  }
});

test(
  "every event of --json matches docs/run-events.schema.json, in order, with calls that pair up",
  {
    skip,
  },
  async () => {
    await using place = await household(FILES);
    await using model = await startModel([
      {
        text: "Looking.",
        calls: [
          ["read_file", { path: "a.txt" }],
          ["grep", { pattern: "a" }],
        ],
        tokens: [10, 2],
      },
      { calls: [["no_such_tool", { a: 1 }]] },
      { calls: [["bash", { command: "curl https://example.com" }]] },
      { calls: [["bash", { command: "exit 3" }]] },
      { calls: [["task", { prompt: "say hello" }]] },
      { text: "hello" },
      { text: "done" },
    ]);
    const ran = await harness(place, ["run", "--json", ...model.flags, "do several things"]);
    const schema = JSON.parse(readFileSync(path.join(ROOT, "docs/run-events.schema.json"), "utf8")) as object;
    const validate = new Ajv2020({ strict: false }).compile(schema);
    const events = eventsOf(ran);
    for (const event of events)
      assert.ok(validate(event), `${JSON.stringify(event)} ${JSON.stringify(validate.errors)}`);
    assert.equal(validate({ ...events[0], seq: "1" }), false);
    assert.deepEqual(
      events.map(({ seq }) => seq),
      events.map((_, at) => at + 1),
    );
    assert.deepEqual([events[0]?.type, events.at(-1)?.type], ["run.started", "run.finished"]);
    assert.equal(new Set(events.map(({ run }) => run)).size, 1);
    const idsOf = (type: "call.proposed" | "call.ended"): readonly string[] =>
      events.flatMap((event) => (event.type === type ? [event.call] : [])).toSorted();
    assert.ok(idsOf("call.proposed").length >= 4);
    assert.deepEqual(idsOf("call.ended"), idsOf("call.proposed"));
    assert.equal(new Set(idsOf("call.ended")).size, idsOf("call.ended").length);
    assert.equal(finishedOf(ran).answer, "done");
  },
);

test("--quiet leaves stderr empty on success, and stdout has the answer", { skip }, async () => {
  await using place = await household(FILES);
  await using model = await startModel([COUNT, { text: "one line" }]);
  const ran = await harness(place, ["run", "--quiet", ...model.flags, "count the lines"]);
  assert.deepEqual([ran.code, ran.stdout, ran.stderr], [0, "one line\n", ""]);
});
