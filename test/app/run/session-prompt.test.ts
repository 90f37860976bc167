import assert from "node:assert/strict";
import { symlink } from "node:fs/promises";
import test from "node:test";
import { History } from "../../../src/agent/context/history.ts";
import { hostFrom } from "../../../src/app/host.ts";
import { LazyBox } from "../../../src/app/run/lazy-box.ts";
import { briefingFrom, instructionsFor, sessionPrompt } from "../../../src/app/run/session-state.ts";
import { DEFAULTS } from "../../../src/config/settings-schema.ts";
import { fakeBox } from "../../fakes/box.ts";
import { scratch } from "../../fixtures/scratch.ts";

const namesIn = async (home: string, work: string): Promise<readonly string[]> => {
  const { own } = await instructionsFor(hostFrom({ HOME: home }), work);
  return own.map(({ path }) => path);
};

test("the user's instructions for other agents apply if harness has none of its own", async () => {
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

test("the user's own instructions may be links to files kept elsewhere, a repository's may not", async () => {
  await using place = await scratch({ "dotfiles/AGENTS.md": "Use spaces.\n", "work/a.txt": "" });
  await place.write(".config/harness/config.json", "{}");
  for (const link of [".config/harness/AGENTS.md", "work/AGENTS.md"])
    await symlink(place.at("dotfiles/AGENTS.md"), place.at(link));
  const { own, project } = await instructionsFor(hostFrom({ HOME: place.path }), place.at("work"));
  assert.deepEqual(
    [...own, ...project].map(({ text }) => text),
    ["Use spaces.\n"],
  );
});

test("a file of which only the beginning is read is marked, whatever characters it has", async () => {
  await using place = await scratch({ "work/AGENTS.md": "漢".repeat(30_000) });
  const { project } = await instructionsFor(hostFrom({ HOME: place.path }), place.at("work"));
  assert.deepEqual(
    project.map(({ cut }) => cut),
    [true],
  );
});

test("instructions for which the user's own leave no room are named", async () => {
  await using place = await scratch({
    ".config/harness/AGENTS.md": "Be brief. ".repeat(1575),
    "work/AGENTS.md": "Use tabs. ".repeat(100),
  });
  const host = hostFrom({ HOME: place.path });
  const prompt = await sessionPrompt(host, DEFAULTS, place.at("work"));
  const [last] = prompt.text.split("\n").slice(-1);
  assert.match(last ?? "", /^\[Cut or left out: "AGENTS\.md"\./);
});

test("the box is handed out only after the first look at the workspace has ended, whether it succeeds or fails", async () => {
  for (const ends of [true, false]) {
    const look = Promise.withResolvers<never>();
    const told: string[] = [];
    const slow = Object.assign(fakeBox({ files: { "a.txt": "" } }), {
      exec: () => {
        told.push("look");
        return look.promise;
      },
    });
    await using box = new LazyBox(
      () => Promise.resolve(slow),
      () => told.push("ready"),
    );
    const { signal } = new AbortController();
    const prompt = { text: "", shown: new Set<string>(), room: 1000 };
    briefingFrom(box, prompt, { history: new History(() => undefined), signal });
    const got = box.box().then(() => told.push("given"));
    for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(told, ["ready", "look"]);
    if (ends) look.resolve({ stdout: { head: new Uint8Array(), tail: new Uint8Array() } } as never);
    else look.reject(new Error("no shell in the image"));
    await got;
    assert.deepEqual(told, ["ready", "look", "given"]);
  }
});
