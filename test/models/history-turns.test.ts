import assert from "node:assert/strict";
import test from "node:test";
import type { Message } from "../../src/core/model-provider.ts";
import { type RequestTranscript, conversationOf } from "../../src/models/request-history.ts";

const user = (text: string): { role: "user"; text: string } => ({ role: "user", text });
const system = (text: string): Message => ({ role: "system", text });
const said = (text: string, ...ids: readonly string[]) => ({
  role: "assistant" as const,
  text,
  calls: ids.map((id) => ({ id, name: "look", args: {} })),
});
const told = (text: string, ...ids: readonly string[]) => ({ ...said(text, ...ids), thinking: "" });
const result = (call: string, text: string): Message => ({ role: "tool", call, text });
const results = (...pairs: readonly (readonly [string, string])[]) => ({
  role: "results" as const,
  results: pairs.map(([call, text]) => ({ call, text })),
});
const NONE = "No result: the call was not run to its end.";

const TALKS: readonly (readonly [string, readonly Message[], RequestTranscript])[] = [
  ["nothing", [], { system: "", turns: [] }],
  ["a system message alone", [system("a")], { system: "a", turns: [] }],
  [
    "system messages at the start are joined",
    [system("a"), system("b"), user("x")],
    { system: "a\n\nb", turns: [user("x")] },
  ],
  [
    "a later system message becomes a user message",
    [system("a"), user("x"), system("b")],
    { system: "a", turns: [user("x\n\nb")] },
  ],
  [
    "successive turns of one side are joined",
    [user("x"), user("y"), said("a"), said("b"), user("z")],
    { system: "", turns: [user("x\n\ny"), told("a\n\nb"), user("z")] },
  ],
  [
    "empty messages are left out",
    [user(" "), user("x"), said(""), user("y")],
    { system: "", turns: [user("x\n\ny")] },
  ],
  [
    "results come in the order of their calls, whichever finished first",
    [user("x"), said("", "1", "2"), result("2", "b"), result("1", "a"), user("y")],
    { system: "", turns: [user("x"), told("", "1", "2"), results(["1", "a"], ["2", "b"]), user("y")] },
  ],
  [
    "messages between results come after them",
    [user("x"), said("", "1", "2"), result("1", "a"), system("note"), result("2", "b"), said("c")],
    {
      system: "",
      turns: [user("x"), told("", "1", "2"), results(["1", "a"], ["2", "b"]), user("note"), told("c")],
    },
  ],
  [
    "a call without a result gets one that says so",
    [user("x"), said("", "1", "2"), result("2", "b"), said("c", "3")],
    {
      system: "",
      turns: [
        user("x"),
        told("", "1", "2"),
        results(["1", NONE], ["2", "b"]),
        told("c", "3"),
        results(["3", NONE]),
      ],
    },
  ],
  [
    "a result without its call becomes text",
    [result("9", "old"), user("x"), said("", "1"), result("1", "a"), result("1", "again")],
    {
      system: "",
      turns: [
        user("Result of an earlier call:\nold\n\nx"),
        told("", "1"),
        results(["1", "a"]),
        user("Result of an earlier call:\nagain"),
      ],
    },
  ],
  [
    "an empty result counts as a result",
    [user("x"), said("", "1"), result("1", "")],
    { system: "", turns: [user("x"), told("", "1"), results(["1", ""])] },
  ],
];

for (const [sentence, messages, conversation] of TALKS)
  test(`a transcript is converted for servers: ${sentence}`, () =>
    assert.deepEqual(conversationOf(messages), conversation));
