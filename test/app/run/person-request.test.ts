import assert from "node:assert/strict";
import test from "node:test";
import { unattended } from "../../../src/agent/approvers.ts";
import {
  requestedModel,
  smallModelEvent,
  testsNote,
  verificationFor,
  onlyWanted,
} from "../../../src/app/run/person-request.ts";
import { fakeAgent } from "../../fakes/agent.ts";
import { fakeBox } from "../../fakes/box.ts";
import { memoryStore } from "../../fakes/store.ts";
import { scratch } from "../../fixtures/scratch.ts";

test("the check named in a record is judged like any command, because a bundle may come from anybody", async () => {
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
      settings: {
        check,
        mode: "workspace-write",
        timeout: 1000,
        capabilities: [],
        provider: "scripted",
        chat_model: "m",
      },
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

test("a script whose name alone suggests a test checks only the work of a small model", async () => {
  await using place = await scratch({ "work/test.sh": "exit 1\n" });
  using store = memoryStore();
  const commandFor = async (provider: "ollama" | "scripted", chat_model: string) => {
    const about = { mode: "workspace-write", provider, model: chat_model, title: "t" } as const;
    const verification = await verificationFor({
      settings: {
        check: null,
        mode: "workspace-write",
        timeout: 1000,
        capabilities: [],
        provider,
        chat_model,
      },
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

test("for a request to run something the project's tests are not a check, and a small model is told how to run them", async () => {
  await using place = await scratch({ "work/Makefile": "test:\n\t./run\n" });
  using store = memoryStore();
  const asked = (
    prompt: string,
    over: { readonly check?: string; readonly intent?: "change"; readonly model?: string } = {},
  ) => {
    const { check = null, model = "qwen2.5-coder:1.5b", intent } = over;
    const about = { mode: "workspace-write", provider: "ollama" } as const;
    return {
      settings: { ...about, check, timeout: 1000, capabilities: [], chat_model: model },
      flags: { strict: false, ...(intent === undefined ? {} : { intent }) },
      prompt,
      workspace: place.at("work"),
      session: store.create({ workspace: place.at("work"), ...about, model, title: "t" }),
      resumed: false,
    };
  };
  const commandFor = async (...given: Parameters<typeof asked>) =>
    (await verificationFor(asked(...given)))?.command;
  assert.equal(await commandFor("mend the parser"), "make test");
  assert.equal(await commandFor("run the tests"), undefined);
  assert.equal(await commandFor("run the tests", { check: "make all" }), "make all", "named by the user");
  assert.equal(await commandFor("run the tests", { intent: "change" }), "make test");
  assert.equal(await commandFor("what changed in the last commit?"), undefined);
  const wanted = (...given: Parameters<typeof asked>) => onlyWanted(asked(...given));
  assert.equal(wanted("run the tests"), "run");
  assert.equal(wanted("list all TODOs"), "look");
  for (const prompt of ["run the tests", "list all TODOs"])
    assert.equal(wanted(prompt, { intent: "change" }), undefined);
  assert.equal(wanted("mend it"), undefined);
  const note = "\n\n[harness] The project's own tests are run by: make test";
  assert.equal(await testsNote(asked("run the tests")), note);
  assert.equal(await testsNote(asked("build the project")), "");
  assert.equal(await testsNote(asked("mend the tests")), "");
  assert.equal(await testsNote(asked("run the tests", { model: "qwen2.5-coder:32b" })), "");
});

const askedOf = (chat_model: string, parameters?: number) =>
  requestedModel({
    settings: {
      check: null,
      mode: "workspace-write",
      timeout: 1000,
      provider: "openai",
      chat_model,
      capabilities: parameters === undefined ? [] : [{ prefix: chat_model, parameters }],
    },
    replayed: undefined,
  });

test("a model counts as small by the user's setting only if neither its name nor its server says otherwise, and this is reported", () => {
  const few = askedOf("mine", 3_000_000_000);
  assert.deepEqual([few.isWeak(), smallModelEvent(few)], [true, { type: "model.small", parameters: 3 }]);
  assert.deepEqual([askedOf("mine").isWeak(), smallModelEvent(askedOf("mine"))], [false, undefined]);
  assert.deepEqual(smallModelEvent(askedOf("mine"), 3.2), { type: "model.small", parameters: 3.2 });
  const large = askedOf("coder:1b", 70_000_000_000);
  assert.deepEqual([large.isWeak(1), smallModelEvent(large, 1)], [false, undefined]);
  const named = askedOf("coder:1b");
  assert.deepEqual([named.isWeak(), smallModelEvent(named, 1)], [true, undefined]);
});
