import assert from "node:assert/strict";
import test from "node:test";
import { hostFrom } from "../../../src/app/host.ts";
import { instructionsFor } from "../../../src/app/run/session-prompt.ts";
import { scratch } from "../../fixtures/scratch.ts";

const namesIn = async (home: string, work: string): Promise<readonly string[]> => {
  const { own } = await instructionsFor(hostFrom({ HOME: home }), work);
  return own.map(({ path }) => path);
};

test("what other agents are told by the user counts where harness has nothing of its own", async () => {
  await using place = await scratch({
    ".claude/CLAUDE.md": "Be brief.\n",
    ".codex/AGENTS.md": "Use tabs.\n",
    "work/a.txt": "",
  });
  assert.deepEqual(await namesIn(place.path, place.at("work")), [
    "(the user's own) ~/.claude/CLAUDE.md",
    "(the user's own) ~/.codex/AGENTS.md",
  ]);
  await place.write(".codex/AGENTS.md", "Be brief.\n");
  assert.deepEqual(await namesIn(place.path, place.at("work")), ["(the user's own) ~/.claude/CLAUDE.md"]);
  await place.write(".config/harness/AGENTS.md", "Use spaces.\n");
  assert.deepEqual(await namesIn(place.path, place.at("work")), ["(the user's own) AGENTS.md"]);
});
