import assert from "node:assert/strict";
import test from "node:test";
import { showFullTool } from "../../src/tools/show-full.ts";
import { memoryOutputs } from "../fakes/tool-context.ts";
import { called, prepared } from "../fixtures/call.ts";

const outputs = memoryOutputs();
outputs.keep("x".repeat(45_000));
const tool = showFullTool({ outputs });

test("a page states its range and where the next one begins", async () => {
  const { text } = await called(tool, { id: "o1" });
  assert.equal(
    text,
    `${"x".repeat(20_000)}\n[characters 0 to 20000 of 45000; next: {"id":"o1","offset":20000}]`,
  );
  const last = await called(tool, { id: "o1", offset: 40_000 });
  assert.equal(last.text, `${"x".repeat(5000)}\n[characters 40000 to 45000 of 45000; this is the end]`);
});

test("an unknown id and an offset past the end are reported, so that the model can correct them", async () => {
  for (const [args, issue] of [
    [{ id: "o9" }, 'there is no output "o9" in this session'],
    [{ id: "o1", offset: 45_000 }, "offset 45000 is past the end: o1 has 45000 characters"],
  ] as const)
    assert.deepEqual(await called(tool, args), { kind: "invalid", issues: [issue], text: issue });
});

test("the tool bounds its own output, and may run in parallel", () => {
  const { bounded, concurrent } = prepared(tool, { id: "o1" });
  assert.deepEqual([bounded, concurrent], [true, true]);
});
