import assert from "node:assert/strict";
import test from "node:test";
import { unattended } from "../../../src/agent/approvers.ts";
import { verificationFor } from "../../../src/app/run/asked-run.ts";
import { fakeAgent } from "../../fakes/agent.ts";
import { fakeBox } from "../../fakes/box.ts";
import { memoryStore } from "../../fakes/store.ts";
import { scratch } from "../../fixtures/scratch.ts";

test("the check that a record names is judged as any command, as the words of a bundle are anybody's", async () => {
  using store = memoryStore();
  const session = store.create({
    workspace: "/repo",
    mode: "workspace-write",
    provider: "scripted",
    model: "m",
    title: "t",
  });
  const ran = async (check: string, replayed?: object): Promise<boolean> => {
    const verification = await verificationFor({
      settings: { check, mode: "workspace-write", timeout: 1000, provider: "scripted", chat_model: "m" },
      flags: { intent: "change", strict: false },
      prompt: "mend it",
      workspace: "/repo",
      session,
      resumed: false,
      replayed,
    });
    const box = fakeBox({ commands: { bash: () => Promise.resolve(0) } });
    const agent = fakeAgent({ lines: [], tools: [], box, over: { approver: unattended("contained") } });
    return (await verification?.before(agent, new AbortController().signal)) !== undefined;
  };
  assert.equal(await ran("rm -rf /"), true, "a user's own word");
  assert.equal(await ran("rm -rf /", {}), false);
  assert.equal(await ran("make verify", {}), true);
});

test("a script that only its name calls a test checks the work of a small model alone", async () => {
  await using place = await scratch({ "work/test.sh": "exit 1\n" });
  using store = memoryStore();
  const commandFor = async (provider: "ollama" | "scripted", chat_model: string) => {
    const about = { mode: "workspace-write", provider, model: chat_model, title: "t" } as const;
    const verification = await verificationFor({
      settings: { check: null, mode: "workspace-write", timeout: 1000, provider, chat_model },
      flags: { intent: "change", strict: false },
      prompt: "mend it",
      workspace: place.at("work"),
      session: store.create({ workspace: place.at("work"), ...about }),
      resumed: false,
    });
    return verification?.command;
  };
  assert.equal(await commandFor("ollama", "qwen2.5-coder:1.5b"), "sh test.sh");
  assert.equal(await commandFor("ollama", "qwen2.5-coder:32b"), undefined);
  assert.equal(await commandFor("scripted", "qwen2.5-coder:1.5b"), undefined);
});
