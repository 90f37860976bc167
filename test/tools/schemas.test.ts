import assert from "node:assert/strict";
import test from "node:test";
import { toolsFor } from "../../src/tools/index.ts";
import { fakeToolContext } from "../fakes/tool-context.ts";

const FILE_TOOLS = ["read_file", "list_dir", "glob", "grep", "edit_file", "write_file", "apply_patch"];

test("the descriptions of the file tools in every request are small", () => {
  const told = toolsFor(fakeToolContext())
    .filter(({ name }) => FILE_TOOLS.includes(name))
    .map(({ name, description, schema }) => ({ name, description, schema }));
  assert.deepEqual(
    told.map(({ name }) => name),
    FILE_TOOLS,
  );
  assert.ok(Buffer.byteLength(JSON.stringify(told)) <= 3600);
});

test("the list of tools is identical for every context", () => {
  const [one, other] = [fakeToolContext({ workspace: "/a" }), fakeToolContext({ workspace: "/b" })].map(
    (context) => JSON.stringify(toolsFor(context)),
  );
  assert.equal(one, other);
});
