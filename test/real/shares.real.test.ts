import assert from "node:assert/strict";
import test from "node:test";
import type { ToolCall, ToolOffer } from "../../src/core/model-provider.ts";
import { type Answered, answered, DIALECTS, type Dialect, providerOf, request } from "./asking.ts";
import { numberFrom } from "./cli.ts";
import { realServer } from "./real-ollama.ts";

/** How many replies of a model are valid calls: as native calls, as text, and with a schema. */

const offer = (name: string, description: string, ...keys: readonly string[]): ToolOffer => ({
  name,
  description,
  schema: {
    type: "object",
    properties: Object.fromEntries(keys.map((key) => [key, { type: "string" }])),
    required: keys,
    additionalProperties: false,
  },
});

const TOOLS = [
  offer("read_file", "Returns the text of a file of the repository.", "path"),
  offer("list_dir", "Returns the names in a folder of the repository.", "path"),
  offer("grep", "Finds a text in all files of the repository.", "text"),
  offer("write_file", "Replaces the text of a file of the repository.", "path", "text"),
] as const;

/** Each prompt requires one call of this tool. */
const ASKED: readonly (readonly [prompt: string, tool: string])[] = [
  ["What does the file src/main.py say?", "read_file"],
  ["Which files lie in the folder docs?", "list_dir"],
  ["Where in the repository is MAX_LOGINS used?", "grep"],
  ["Make the file VERSION say 1.2.0 and nothing else.", "write_file"],
  ["Is there a licence in the root of the repository? Look at the names first.", "list_dir"],
  ["The build fails in Makefile. Look at that file.", "read_file"],
  ["Find every place that calls open_socket.", "grep"],
  ["Put the line node_modules into the file .gitignore, it is empty now.", "write_file"],
  ["Show me test/range.test.js.", "read_file"],
  ["What tests are there in the folder test?", "list_dir"],
];

const SYSTEM =
  "You work on a repository with tools. Answer each request with the one call that is needed next.";

const WAYS = ["native", "text", "held"] as const;
type Way = (typeof WAYS)[number];

function ask(dialect: Dialect, way: Way, prompt: string): Promise<Answered> {
  const asked = request({
    messages: [
      { role: "system", text: SYSTEM },
      { role: "user", text: prompt },
    ],
    maxTokens: 100,
    tools: TOOLS,
    ...(way === "held" ? { hold: { now: true } } : {}),
  });
  return answered(providerOf(dialect, { tools: way === "native" }), asked);
}

/** The calls of a reply; native ones have to be the server's own. */
function callsIn({ events, last }: Answered, way: Way): readonly ToolCall[] {
  if (last.type !== "finished") return [];
  const isOwn = events.some(({ type }) => type === "call");
  return way === "native" && !isOwn ? [] : last.message.calls;
}

/** One call, of a tool that was offered, with its arguments and no others. */
function isValid(calls: readonly ToolCall[]): boolean {
  const [call] = calls;
  const keys = TOOLS.find(({ name }) => name === call?.name)?.schema["required"] as
    | readonly string[]
    | undefined;
  return (
    calls.length === 1 &&
    keys !== undefined &&
    Object.keys(call?.args ?? {})
      .toSorted()
      .join(" ") === keys.toSorted().join(" ")
  );
}

/** The reply, shortened. */
const inShort = ({ last }: Answered): string =>
  last.type === "failed"
    ? `${last.failure.kind}: ${last.failure.reason}`
    : `${last.stop} ${JSON.stringify(last.message.text.slice(0, 120))} ${last.message.calls.map(({ name }) => name).join(" ")}`;

/** Whether a reply with a schema that is no call is still complete: an answer in words, or one that ran out of room. */
const isWhole = ({ last }: Answered): boolean =>
  last.type === "finished" &&
  (last.stop === "length" || (last.malformed.length === 0 && last.message.text.trim() !== ""));

const COUNT = numberFrom("HARNESS_REAL_SHARES", ASKED.length);
for (const dialect of DIALECTS)
  for (const way of WAYS)
    test(`${dialect}: how many replies are valid calls, ${way}`, async (t) => {
      const prompts = Array.from({ length: COUNT }, (_, at) => ASKED[at % ASKED.length] ?? ["", ""]);
      const told: string[] = [];
      let valid = 0;
      let right = 0;
      for (const [prompt, tool] of prompts) {
        const reply = await ask(dialect, way, prompt);
        const calls = callsIn(reply, way);
        const isOne = isValid(calls);
        const isRight = isOne && calls[0]?.name === tool;
        valid += Number(isOne);
        right += Number(isRight);
        if (!isRight)
          t.diagnostic(`${isOne ? "another call" : "no valid call"}: ${prompt} → ${inShort(reply)}`);
        if (way === "held" && !isOne && !isWhole(reply)) told.push(inShort(reply));
      }
      t.diagnostic(`${realServer().model} ${way}: ${valid} of ${COUNT} valid, ${right} the wanted one`);
      assert.deepEqual(told, [], "a held reply is a call, an answer, or cut at its length");
    });
