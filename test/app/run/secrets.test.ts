import assert from "node:assert/strict";
import test from "node:test";
import type { AgentEvent } from "../../../src/core/events.ts";
import type { Message, ModelRequest, Provider } from "../../../src/core/model-provider.ts";
import type { Session } from "../../../src/core/session.ts";
import { sinkOf } from "../../../src/app/run/event-sink.ts";
import { withoutSecrets } from "../../../src/app/run/composition.ts";
import { SECRET } from "../../fixtures/secrets.ts";

const TOKEN = SECRET.find(([kind]) => kind === "github token")?.[2] ?? "";
const MASK = "[secret: github token]";

const messages = (secret: string): readonly Message[] => [
  { role: "system", text: `use ${secret}` },
  { role: "user", text: secret },
  {
    role: "assistant",
    text: "so",
    calls: [{ id: "c1", name: "bash", args: { command: [`echo ${secret}`] } }],
  },
  { role: "tool", call: "c1", text: `x ${secret}` },
];

test("no message sent to a remote model contains a secret, whatever its role", async () => {
  const asked: ModelRequest[] = [];
  const provider: Provider = {
    async *stream(request) {
      asked.push(request);
      yield { type: "text", text: "" };
    },
    capabilities: () => Promise.reject(new Error("not asked here")),
  };
  const request: ModelRequest = { model: "m", messages: messages(TOKEN), tools: [] };
  for await (const _ of withoutSecrets(provider).stream(request, new AbortController().signal));
  assert.deepEqual(asked, [{ ...request, messages: messages(MASK) }]);
});

test("the log of a session contains no secret, and the display gets the original text", () => {
  const [logged, shown, told]: AgentEvent[][] = [[], [], []];
  const session = {
    log: (event: AgentEvent) => logged?.push(event),
    atomically: (work: () => void) => work(),
  } as unknown as Session;
  const sink = sinkOf(
    session,
    "r1",
    (event) => told?.push(event),
    (event) => shown?.push(event),
  );
  sink.emit({ type: "notice", text: `see ${TOKEN}` });
  assert.deepEqual(logged, [{ type: "notice", text: `see ${MASK}`, run: "r1", seq: 1 }]);
  assert.deepEqual(shown, [{ type: "notice", text: `see ${TOKEN}`, run: "r1", seq: 1 }]);
  assert.deepEqual(told, shown);
});
