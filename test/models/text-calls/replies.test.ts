import assert from "node:assert/strict";
import test from "node:test";
import type { TextReading } from "../../../src/models/text-calls/text-protocol.ts";
import { CallStream, readCalls } from "../../../src/models/text-calls/text-call-stream.ts";
import { allReplies, FILES, type Reply, repliesIn } from "../../fixtures/text-calls/replies.ts";

const plain = (text: string): string => text.replaceAll(/\s+/g, " ").trim();

function answers(want: Reply["want"], reading: TextReading): boolean {
  if (want === "malformed") return reading.calls.length === 0 && reading.malformed.length > 0;
  return (
    JSON.stringify(reading.calls) === JSON.stringify(want) &&
    (want.length > 0 || reading.malformed.length === 0)
  );
}

for (const name of FILES)
  test(`every recorded reply is read as intended: ${name}`, () => {
    const wrong = repliesIn(name).filter((reply) => {
      const reading = readCalls(reply.text, reply.tools);
      const right =
        answers(reply.want, reading) || (reply.also !== undefined && answers(reply.also, reading));
      const seen = reply.debatable === true || plain(reading.prose) === plain(reply.prose);
      return !(right && seen) && !(reply.debatable === true && reading.calls.length === 0);
    });
    assert.deepEqual(
      wrong.map(({ id, text }) => `${id} ${text}`),
      [],
    );
  });

test("half of the recorded replies are not calls", () => {
  const all = allReplies();
  assert.ok(all.length > 260);
  assert.ok(all.filter(({ want }) => want === "malformed" || want.length === 0).length * 2 > all.length);
});

/** A reply in pieces: what was displayed, and the final reading. */
function streamed(reply: Reply, sizes: (index: number) => number): { shown: string; reading: TextReading } {
  const stream = new CallStream(reply.tools);
  let shown = "";
  for (let at = 0, index = 0; at < reply.text.length; index += 1) {
    const size = sizes(index);
    shown += stream.push(reply.text.slice(at, at + size));
    at += size;
  }
  const reading = stream.end();
  return { shown, reading };
}

/** Text that a late end of thinking turns into a thought was already displayed. */
const LATE_THOUGHT = /<\/think>/;

for (const [name, sizes] of [
  ["1", () => 1],
  ["2", () => 2],
  ["3", () => 3],
  ["7", () => 7],
  ["many", (index: number) => ((index * 7919) % 13) + 1],
] as const)
  test(`pieces of ${name} characters change nothing, and no call is displayed`, () => {
    for (const reply of allReplies()) {
      const { shown, reading } = streamed(reply, sizes);
      assert.deepEqual(reading, readCalls(reply.text, reply.tools), reply.id);
      if (!reading.prose.startsWith(shown)) assert.match(reply.text, LATE_THOUGHT, `${reply.id} ${shown}`);
    }
  });

const call = (path: string): string => JSON.stringify({ name: "read_file", arguments: { path } });
const paths = (text: string): readonly unknown[] =>
  readCalls(text, ["read_file"]).calls.map(({ args }) => args["path"]);

test("an unfinished call after others, cut before the end of its name, does not affect them", () => {
  const calls = [call("a"), call("b")].join("\n");
  for (const cut of [
    "{",
    "[",
    '{"',
    '{"name',
    '{"name"',
    '{"name":',
    '{"name":"',
    '{"name": "read_f',
    '; {"name":"',
  ])
    assert.deepEqual(paths(`${calls}\n${cut}`), ["a", "b"], cut);
  for (const said of ["{ is a brace", "and so on", '{"name": "read_file" is what I call'])
    assert.deepEqual(paths(`${calls}\n${said}`), [], said);
});
