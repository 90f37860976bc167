import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { skip as noEngine } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { FAR } from "./parked.ts";
import { AGAIN } from "./chatting.ts";
import { type AskedChat, harness, type Said, startModel } from "./run-command.ts";
import { noTerminal, onTerminal } from "./terminal.ts";

const skip = noTerminal || noEngine;
const ASKED = /run it\? \[y\/N\] $/;

const CALLS: Readonly<Record<string, (what: string) => NonNullable<Said["calls"]>[number]>> = {
  run: (command) => ["bash", { command }],
  ask: (question) => ["ask_user", { question }],
  read: (file) => ["read_file", { path: file }],
  edit: (file) => ["edit_file", { path: file, old: "one", new: "two" }],
  part: (file) => ["write_file", { path: file, content: "one\n" }],
};

/** Calls the one thing that a request names, and answers with what came of it. */
function obeys({ messages }: AskedChat): Said {
  const { role, content } = messages.at(-1) ?? { role: "", content: "" };
  const [, how = "", what = ""] = /^(run|ask|read|edit|part): (.*)$/m.exec(content) ?? [];
  const call = role === "user" ? CALLS[how]?.(what) : undefined;
  return call === undefined ? { text: `Done: ${content.split("\n")[0]}` } : { calls: [call] };
}

type Steps = readonly (readonly [typed: string, until: RegExp])[];

/** What a person types, up to what comes of it. */
const CHAT: Steps = [
  ["run: echo x > kept.txt; echo y > /tmp/kept\r", ASKED],
  ["y\r", AGAIN],
  ["run: cat kept.txt /tmp/kept\r", AGAIN],
  ["run: echo no > no.txt\r", ASKED],
  ["t\r", /tell the model> $/],
  ["not that\r", AGAIN],
  ["run: echo wrong > e.txt\r", ASKED],
  ["e\r", /edit> .*$/],
  ["\u007F\u007F\u007Fmd\r", ASKED],
  ["y\r", AGAIN],
  ["ask: which one?\r", /answer> $/],
  ["the red one\r", AGAIN],
  [`run: ${FAR}\r`, ASKED],
  ["y\r", AGAIN],
  ["/undo files\r", /Take this back\? \[y\/N\] $/],
  ["y\r", AGAIN],
  ["run: ls; cat /tmp/kept\r", AGAIN],
  ["/mode read-only\r", AGAIN],
  ["run: echo no > x; ls\r", AGAIN],
  ["/mode workspace-write\r", AGAIN],
  ["read: a.txt\r", AGAIN],
  ["/undo\r", AGAIN],
  ["edit: a.txt\r", AGAIN],
];

/** Written by a command that a person interrupts, as the last thing that is done. */
const WAITS = "run: echo at > at.txt; sleep 300\r";

async function chatIn(place: Scratch): Promise<void> {
  await using model = await startModel(obeys);
  await using terminal = onTerminal(place, model.flags);
  await terminal.until(/harness> $/);
  for (const [typed, until] of CHAT) {
    terminal.type(typed);
    await terminal.until(until);
  }
  terminal.type(WAITS);
  await terminal.until(ASKED);
  terminal.type("y\r");
  while (!existsSync(place.at("work/at.txt"))) await sleep(20);
  terminal.type("\u0003");
  await terminal.until(/cancelled/);
}

interface Line {
  readonly request: number;
  readonly tool?: string;
  readonly command?: string;
  readonly outcome: string;
  readonly reason: string;
  readonly now: { readonly status?: string; readonly kind?: string } | null;
}

async function replayed(place: Scratch, ...words: readonly string[]) {
  const ran = await harness(place, ["replay", "--conversation", "--json", ...words]);
  const lines = ran.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
  const differ = lines
    .filter(({ outcome }) => outcome !== undefined && outcome !== "same")
    .map(({ request, tool, reason }) => [request, tool, reason]);
  return { ran, lines: lines.slice(0, -1), differ, summary: lines.at(-1), text: ran.stdout + ran.stderr };
}

/** As its files were before. */
async function asBefore(place: Scratch): Promise<void> {
  for (const name of await readdir(place.at("work")))
    if (name !== "a.txt") await rm(place.at(path.join("work", name)));
  await place.write("work/a.txt", "one\n");
}

test(
  "a chat is replayed turn by turn, with undone, changed and interrupted turns, from the session and from a file",
  { skip },
  async () => {
    await using place = await household({ "a.txt": "one\n" });
    await using other = await household({ "a.txt": "one\n" });
    await chatIn(place);
    const [id = ""] = (await harness(place, ["sessions", "list", "--json"])).stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => (JSON.parse(line) as { id: string }).id);
    const exported = await harness(place, ["sessions", "export", id, "--bundle", other.at("s.tar")]);
    assert.equal(exported.code, 0, exported.stderr);
    await asBefore(place);
    const here = await replayed(place);
    assert.deepEqual([here.differ, here.ran.code], [[], 0], here.text);
    const ends = here.lines.filter(({ tool }) => tool === undefined);
    assert.deepEqual(
      ends.map(({ now }) => now?.status),
      [
        ...Array.from({ length: 2 }, () => "done"),
        "refused",
        ...Array.from({ length: 4 }, () => "done"),
        "refused",
        "done",
        "done",
        "interrupted",
      ],
      here.text,
    );
    assert.equal(here.lines.filter(({ tool }) => tool !== undefined).length, 11);
    assert.deepEqual(await readdir(place.at("work")), ["a.txt"]);
    // A yes counts where it was said, and nowhere else.
    const there = await replayed(other, "--bundle", other.at("s.tar"));
    assert.deepEqual(
      [there.differ, there.ran.code],
      [
        [
          [
            6,
            "bash",
            "judged differently: then ask, run; now ask, not run; a person's approval in a file allows nothing",
          ],
          [
            6,
            undefined,
            `Refused: bash ${FAR} (curl reaches the network: example.com; grant it with --allow-domain example.com)`,
          ],
        ],
        1,
      ],
      there.text,
    );
    assert.deepEqual(await readdir(other.at("work")), ["a.txt"]);
  },
);

test("a chat with a small model is replayed as such", { skip }, async () => {
  const long = Array.from({ length: 40 }, (_, at) => `line ${at}\n`).join("");
  await using place = await household({ "long.txt": long });
  {
    await using model = await startModel(obeys);
    await using terminal = onTerminal(place, model.toldSmallFlags);
    await terminal.until(/harness> $/);
    terminal.type("read: long.txt\r");
    await terminal.until(AGAIN);
    terminal.type("part: long.txt\r");
    assert.match(await terminal.until(AGAIN), /40 of its 40 lines/);
    terminal.type("exit\r");
    await terminal.ended;
  }
  const again = await replayed(place);
  assert.deepEqual([again.differ, again.ran.code], [[], 0], again.text);
  assert.equal(again.lines.filter(({ tool }) => tool === "write_file").length, 1);
});
