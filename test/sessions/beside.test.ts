import assert from "node:assert/strict";
import path from "node:path";
import { execFile } from "node:child_process";
import test from "node:test";
import { promisify } from "node:util";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT } from "../contract/store-words.ts";
import { scratch } from "../fixtures/scratch.ts";

const run = promisify(execFile);
const WRITER = path.join(import.meta.dirname, "../fixtures/store-writer.ts");

const write = async (state: string, id: string, name: string, count: number): Promise<readonly string[]> => {
  const { stdout } = await run(process.execPath, [WRITER, state, id, name, String(count)]);
  return stdout.trimEnd().split("\n");
};

test("two processes write to the same session and lose nothing", async () => {
  await using place = await scratch();
  const state = place.at("state");
  using store = openStore(state);
  const session = store.create(ABOUT);
  const said = await Promise.all([write(state, session.id, "a", 400), write(state, session.id, "b", 400)]);
  assert.deepEqual(
    said.map(({ length }) => length),
    [400, 400],
  );
  const records = session.records();
  assert.equal(records.length, 800);
  for (const name of ["a", "b"]) {
    const own = records.flatMap((record) =>
      record.kind === "message" && record.message.text.startsWith(`${name} `)
        ? [Number(record.message.text.split(" ")[1])]
        : [],
    );
    assert.ok(own.length > 300);
    assert.deepEqual(
      own,
      own.toSorted((one, other) => one - other),
      "each in its own order",
    );
  }
  const kept = Array.from({ length: 200 }, (_, at) => session.outputs.page(`o${at + 1}`, 0, 9)).filter(
    Boolean,
  );
  assert.ok(kept.length > 100 && kept.length < 120, `${kept.length} outputs`);
});

test("four processes that start at once create one database", async () => {
  await using place = await scratch();
  const state = place.at("state");
  const names = ["a", "b", "c", "d"];
  const said = await Promise.all(names.map((name) => write(state, "new", name, 20)));
  using store = openStore(state, { warn: assert.fail });
  assert.deepEqual(new Set(store.list({}).map(({ id }) => id)), new Set(said.map(([id]) => id)));
  for (const { id } of store.list({})) assert.equal(store.open(id).records().length, 20);
});
