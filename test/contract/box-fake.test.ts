import assert from "node:assert/strict";
import test from "node:test";
import { fakeBox, fakeSandbox } from "../fakes/box.ts";
import type { FakeCommand } from "../fakes/commands.ts";
import { boxContract } from "./box.ts";
import { asking, FILES, NEVER, text } from "./box-words.ts";

const words = {
  exit: (code: number) => ["exit", String(code)],
  die: (signal: number) => ["die", String(signal)],
  leave: (processes: number) => ["leave", String(processes)],
  says: (out: string, err: string) => ["says", out, err],
  flood: (bytes: number) => ["flood", String(bytes)],
};

boxContract("fake box", () => {
  const box = fakeBox({ files: FILES });
  const lose = (): void => box.lose("the container was killed");
  return Promise.resolve({ box, words, lose, [Symbol.asyncDispose]: () => box[Symbol.asyncDispose]() });
});

const greet: FakeCommand = async ({ out, words }) => {
  await out(`hello ${words[1]}`);
  return 5;
};

test("a scripted sandbox starts scripted boxes, which record their requests", async () => {
  await using box = await fakeSandbox({ commands: { greet } }).start({ workspace: "/w", mode: "read-only" });
  const { exit_code, stdout } = await box.exec(asking(["greet", "you"]), NEVER);
  assert.deepEqual([box.workspace, exit_code, text(stdout.head)], ["/w", 5, "hello you"]);
});
