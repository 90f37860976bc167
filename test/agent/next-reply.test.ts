import assert from "node:assert/strict";
import test from "node:test";
import { work } from "../../src/agent/loop.ts";
import { NextReply } from "../../src/agent/next-reply.ts";
import * as z from "zod";
import { anyTool, NO_FACTS } from "../../src/core/tool.ts";
import { fakeAgent } from "../fakes/agent.ts";

const TOOLS = ["read_file", "edit_file"];

test("a temperature for tools is always sent, the user's before ours", () => {
  assert.deepEqual(new NextReply().take(TOOLS), { temperature: 0.2, hold: {} });
  assert.deepEqual(new NextReply(0).take(TOOLS), { temperature: 0, hold: {} });
  assert.deepEqual(new NextReply(1.5).another().take(TOOLS), { temperature: 1.5, hold: {} });
});

test("what was repeated is left out for one reply, which is livelier", () => {
  const next = new NextReply();
  next.repeated("edit_file");
  next.repeated("edit_file");
  next.repeated("unknown");
  assert.deepEqual(next.take(TOOLS), { temperature: 0.8, hold: { without: ["edit_file"] } });
  assert.deepEqual(next.take(TOOLS), { temperature: 0.2, hold: {} });
  const warm = new NextReply(1.2);
  warm.repeated("edit_file");
  assert.equal(warm.take(TOOLS).temperature, 1.2);
});

test("a reply without a usable call has the next one held, once", () => {
  const next = new NextReply();
  next.unusable();
  assert.deepEqual(next.take(TOOLS), { temperature: 0.2, hold: { now: true } });
  assert.deepEqual(next.take(TOOLS), { temperature: 0.2, hold: {} });
});

test("paths are known until something nobody can list has changed", () => {
  const next = new NextReply();
  next.changed("early.ts");
  next.files(["a.ts"]);
  next.changed("b.ts");
  assert.deepEqual(next.take(TOOLS).hold, { paths: ["a.ts", "b.ts"] });
  next.changed(undefined);
  assert.deepEqual(next.take(TOOLS).hold, {});
});

test("a call that is repeated three times is not offered for the reply behind it", async () => {
  const say = anyTool({
    name: "say",
    description: "",
    input: z.object({}),
    facts: () => NO_FACTS,
    beside: false,
    where: "session",
    run: () => Promise.resolve({ kind: "ok", text: "said" }),
  });
  const again = { calls: [["say", {}]] } as const;
  const agent = fakeAgent({ lines: [again, again, again, { text: "enough" }], tools: [say] });
  await work(agent, new AbortController().signal);
  assert.deepEqual(
    agent.asked.map(({ hold, temperature, tools }) => [hold?.without ?? [], temperature, tools.length]),
    [
      [[], 0.2, 1],
      [[], 0.2, 1],
      [[], 0.2, 1],
      [["say"], 0.8, 1],
    ],
  );
});
