import assert from "node:assert/strict";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { type AskedChat, harness, type Said, startModel } from "./run-command.ts";
import { bytesOfChat, lastResult, resultsIn } from "./run-requests.ts";

const MAX_COUNT = 30_720;
const DONE: Said = { text: "done" };
/** What names the rest: an id and where it goes on. */
const MORE = /show_full (\{[^}]*\})/;
const NEXT = /\n\[characters \d+ to \d+ of (\d+); (?:next: (\{.*\})|this is the end)\]$/;

/** Pages until the end. */
function paging(first: Said): (chat: AskedChat, nth: number) => Said {
  return (chat, nth) => {
    if (nth === 0) return first;
    const last = resultsIn(chat).at(-1) ?? "";
    const id = /"id":\s*"([^"]+)"/.exec(MORE.exec(last)?.[1] ?? "")?.[1];
    const next = nth === 1 ? JSON.stringify({ id, offset: 0 }) : NEXT.exec(last)?.[2];
    if (next === undefined) return DONE;
    return { calls: [["show_full", JSON.parse(next) as Record<string, unknown>]] };
  };
}

const pagesIn = (results: readonly string[]): string =>
  results
    .slice(1)
    .map((page) => page.slice(0, page.search(NEXT)))
    .join("");

test("600 KB on one line are shown as head and tail, and show_full returns all of it", { skip }, async () => {
  const line = Array.from({ length: 60_000 }, (_, at) => `€${at}`.padEnd(8, "·")).join("");
  await using place = await household({ "min.js": line });
  await using model = await startModel(paging({ calls: [["bash", { command: "cat min.js" }]] }), 1_000_000);
  const ran = await harness(place, ["run", "--max-turns", "90", ...model.flags, "read min.js"]);
  assert.equal(ran.code, 0, ran.stderr);
  const results = model
    .asked()
    .slice(1)
    .map((chat) => resultsIn(chat).at(-1) ?? "");
  for (const text of results) assert.ok(Buffer.byteLength(text) <= MAX_COUNT, `${Buffer.byteLength(text)}`);
  assert.equal(results[0]?.slice(0, 12), line.slice(0, 12));
  assert.ok(results[0]?.includes("€59999"));
  assert.equal(pagesIn(results).trimEnd(), line);
});

for (const [name, args] of [
  ["read_file", { path: "min.js" }],
  ["grep", { pattern: "needle" }],
] as const)
  test(`${name} on such a line stays small`, { skip }, async () => {
    await using place = await household({ "min.js": `${"x".repeat(300_000)}needle${"y".repeat(300_000)}` });
    await using model = await startModel([{ calls: [[name, args]] }, DONE]);
    const ran = await harness(place, ["run", ...model.flags, "find the needle"]);
    assert.equal(ran.code, 0, ran.stderr);
    assert.ok(Buffer.byteLength(lastResult(model.asked())) <= MAX_COUNT);
    assert.ok(model.asked().every((chat) => bytesOfChat(chat) < 60_000));
  });

test("100 MB of output lead to a small request that says what is missing", { skip }, async () => {
  await using place = await household();
  const command = "seq 12500000; echo the end";
  await using model = await startModel([{ calls: [["bash", { command }]] }, DONE]);
  const ran = await harness(place, ["run", ...model.flags, "print a lot"]);
  assert.equal(ran.code, 0, ran.stderr);
  const result = lastResult(model.asked());
  assert.ok(Buffer.byteLength(result) <= MAX_COUNT);
  assert.match(result, /the end/);
  assert.match(result, /left out|not kept/);
  assert.ok(model.asked().every((chat) => bytesOfChat(chat) < 60_000));
});

test("binary output arrives as text, and control characters are made visible", { skip }, async () => {
  await using place = await household();
  const command = String.raw`printf 'a\033[31mred\033]0;title\007\377\376\000b\r\nc\n'`;
  await using model = await startModel([{ calls: [["bash", { command }]] }, DONE]);
  const ran = await harness(place, ["run", ...model.flags, "print controls"]);
  const result = lastResult(model.asked());
  assert.doesNotMatch(result + ran.stderr, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
  assert.match(result, /^a␛\[31mred␛]0;title␇/);
});
