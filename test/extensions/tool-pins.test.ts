import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import test from "node:test";
import { type OfferedTool, ToolPins } from "../../src/extensions/tool-catalogue.ts";
import { scratch } from "../fixtures/scratch.ts";

const tool = (own: string, hash: string): OfferedTool => ({
  name: `s__${own}`,
  own,
  description: "",
  schema: {},
  check: {},
  hash,
});

const ownOf = (tools: readonly OfferedTool[]): readonly string[] => tools.map(({ own }) => own);

test("what a server said is known to the next run: what is other is told once, what is new too", async () => {
  await using place = await scratch();
  const file = place.at("deep/tools.json");
  const first = new ToolPins(file);
  const [a, b] = [tool("a", "1"), tool("b", "1")];
  assert.deepEqual(first.compare([a, b]), { changed: [], added: [] });
  await first.keep([a, b]);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  const next = new ToolPins(file);
  const now = [tool("a", "2"), b, tool("c", "1")];
  const { changed, added } = next.compare(now);
  assert.deepEqual([ownOf(changed), ownOf(added)], [["a"], ["c"]]);
  await next.keep(now);
  assert.deepEqual(new ToolPins(file).compare(now), { changed: [], added: [] });
});

test("a tool that was gone and comes back as another is told", async () => {
  await using place = await scratch();
  const pins = new ToolPins(place.at("tools.json"));
  await pins.keep([tool("a", "1")]);
  await pins.keep([]);
  assert.deepEqual(ownOf(pins.compare([tool("a", "2")]).changed), ["a"]);
});

test("what cannot be read vouches for nothing: all of it is new", async () => {
  await using place = await scratch({ "tools.json": '{"form": 1, "tools": {"a": 7}}' });
  assert.deepEqual(ownOf(new ToolPins(place.at("tools.json")).compare([tool("a", "7")]).added), ["a"]);
});
