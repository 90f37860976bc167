import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { eventsSchema, SCHEMA_FILE } from "../../bin/events-schema.ts";
import { eventForm } from "../../src/core/events.ts";
import { EVERY_EVENT, stamped } from "../fixtures/events.ts";

const committed: unknown = JSON.parse(readFileSync(SCHEMA_FILE, "utf8"));
const validate = new Ajv2020({ strict: true, allErrors: true }).compile(committed as object);

test("the committed schema is generated from the current forms (npm run events-schema renews it)", () => {
  assert.deepEqual(committed, JSON.parse(eventsSchema()));
});

for (const event of [...stamped(Object.values(EVERY_EVENT)), ...stamped([EVERY_EVENT.text], "c1")])
  test(`${event.type} matches the schema and its form${event.agent === undefined ? "" : ", of a subagent too"}`, () => {
    assert.deepEqual([validate(event), validate.errors], [true, null]);
    assert.deepEqual(eventForm.parse(event), event);
  });

test("a missing field, a wrong value and an unknown type are refused; a new field is accepted", () => {
  const [event] = stamped([EVERY_EVENT["call.ended"]]);
  assert.ok(event);
  const { seq: _, ...without } = event;
  assert.equal(validate(without), false);
  assert.equal(validate({ ...event, kind: "well" }), false);
  assert.equal(validate({ ...event, type: "run.paused" }), false);
  assert.equal(validate({ ...event, since: "a later version" }), true);
});

const page = readFileSync(new URL("../../docs/run-json.md", import.meta.url), "utf8");

test("the examples on the page about events match the schema", () => {
  const lines = page.split("\n").filter((line) => line.startsWith("{"));
  assert.ok(lines.length > 5);
  for (const line of lines)
    assert.deepEqual([validate(JSON.parse(line)), validate.errors], [true, null], line);
});

test("the line of a failure matches the schema, and an incomplete one does not", () => {
  const [, example = ""] = /```jsonl\n(.+)\n```/.exec(page.split("## Where no run begins")[1] ?? "") ?? [];
  assert.deepEqual([validate(JSON.parse(example)), validate.errors], [true, null], example);
  assert.equal(validate({ error: { message: "there is no task" } }), false);
});

test("the page about events names every type with every field", () => {
  for (const { shape } of eventForm.options) {
    const { type, run: _, seq: __, agent: ___, candidate: ____, ...own } = shape;
    const row = page.split("\n").find((line) => line.startsWith(`| \`${type.value}\``));
    assert.ok(row !== undefined, `no row for ${type.value}`);
    for (const field of Object.keys(own)) assert.match(row, new RegExp(`\`${field}\``), type.value);
  }
});
