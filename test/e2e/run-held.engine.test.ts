import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { type AskedChat, eventsOf, harness, startModel } from "./run-command.ts";

/** Runs with a model whose calls get through only where its replies are held to a schema. */

const CALL = { text: '{"tool": "bash", "arguments": {"command": "touch made"}}' };
const ANSWER = { text: '{"answer": "All is well."}' };
const FENCED = { text: '```json\n{"name": "make_file", "arguments": {"name": "made"}}\n```' };

const isHeld = ({ format }: AskedChat): boolean => JSON.stringify(format ?? {}).includes('"const":"bash"');
const lastOf = ({ messages }: AskedChat): string => messages.at(-1)?.content ?? "";
const FORM = /\n\nReply with one JSON object and nothing else: [^\n]*$/;

test(
  "a model configured to be constrained calls and answers in JSON that is not shown",
  { skip },
  async () => {
    await using place = await household();
    await using model = await startModel((chat, nth) =>
      isHeld(chat) ? (nth === 0 ? CALL : ANSWER) : FENCED,
    );
    const row = '[{"prefix": "coder", "calls": "held"}]';
    assert.equal((await harness(place, ["config", "set", "capabilities", row])).code, 0);
    const ran = await harness(place, ["run", ...model.flags, "touch a file"]);
    assert.deepEqual([ran.code, ran.stdout], [0, "All is well.\n"], ran.stderr);
    assert.ok(existsSync(place.at("work/made")));
    const [first, second] = model.asked();
    assert.ok(first !== undefined && second !== undefined);
    assert.deepEqual([first.tools, second.tools], [undefined, undefined]);
    assert.match(lastOf(first), FORM);
    const before = first.messages.map(({ content }) => content.replace(FORM, ""));
    assert.deepEqual(
      second.messages.slice(0, before.length).map(({ content }) => content),
      before,
    );
  },
);

test("a call of an unknown tool is reported, and the next reply is constrained", { skip }, async () => {
  await using place = await household();
  await using model = await startModel((chat, nth) => (isHeld(chat) ? (nth === 1 ? CALL : ANSWER) : FENCED));
  const ran = await harness(place, ["run", "--json", ...model.flags, "touch a file"]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.ok(existsSync(place.at("work/made")));
  const missed = eventsOf(ran).filter((event) => event.type === "call.missed");
  assert.deepEqual(
    missed.map(({ tool, kind }) => [tool, kind]),
    [
      ["make_file", "not_offered"],
      ["make_file", "not_offered"],
    ],
  );
  const asked = model.asked();
  assert.deepEqual(asked.map(isHeld), [false, true, false, true]);
  assert.match(
    asked.map(lastOf)[1] ?? "",
    /Your call of make_file was not run: There is no tool "make_file"/,
  );
  const tools = asked.map((chat) => JSON.stringify(chat.tools));
  assert.deepEqual(new Set(tools).size, 1, "the prefix stays as it is");
});
