// alone: it fills disks and pipes
import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import type { ExecRequest, ExecResult } from "../../src/core/ports.ts";
import { startBox } from "../../src/docker/box/start-box.ts";
import { engine } from "../fixtures/engine-api.ts";
import { ROOT, skip } from "../fixtures/engine.ts";
import { Room } from "../fixtures/escape.ts";

const MiB = 2 ** 20;

interface Flood {
  readonly result: ExecResult;
  /** How much more this process held at most. */
  readonly grown: number;
}

async function flood(
  room: Room,
  request: Partial<ExecRequest> & { readonly words: readonly string[] },
): Promise<Flood> {
  const box = await room.box();
  const before = process.memoryUsage.rss();
  let most = before;
  const timer = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 20);
  try {
    const result = await box.exec(
      { timeoutMs: 60_000, keep: { head: 65_536, tail: 65_536 }, ...request },
      new AbortController().signal,
    );
    return { result, grown: most - before };
  } finally {
    clearInterval(timer);
  }
}

async function* pieces(count: number, sent: { bytes: number }): AsyncIterable<Uint8Array> {
  const piece = Buffer.alloc(MiB, "x");
  for (let i = 0; i < count; i += 1) {
    sent.bytes += piece.length;
    yield piece;
  }
}

test("half a gigabyte of output is counted, but not kept or logged", { skip }, async () => {
  await using room = await Room.make();
  const { result, grown } = await flood(room, {
    words: ["bash", "-c", "head -c 256M /dev/zero; head -c 256M /dev/zero >&2"],
  });
  for (const { total, lost, head, tail } of [result.stdout, result.stderr])
    assert.deepEqual([total, lost, head.length, tail.length], [2 ** 28, 2 ** 28 - 131_072, 65_536, 65_536]);
  assert.equal(result.exit_code, 0);
  assert.ok(grown < 150 * MiB, `the harness grew by ${grown}`);
  const [id = ""] = await room.boxes();
  assert.equal((await engine.api.getContainer(id).inspect()).LogPath, "", "the engine keeps no log");
});

test("of a long output the head and the last words are kept", { skip }, async () => {
  await using room = await Room.make();
  const { result } = await flood(room, { words: ["bash", "-c", "seq 1 5000000; echo last >&2"] });
  assert.ok(Buffer.from(result.stdout.head).toString().startsWith("1\n2\n3\n"));
  assert.ok(Buffer.from(result.stdout.tail).toString().endsWith("\n5000000\n"));
  assert.equal(Buffer.from(result.stderr.head).toString(), "last\n");
  assert.ok(result.stdout.lost > 0);
});

test("a slow reader slows the command down instead of using memory", { skip }, async () => {
  await using room = await Room.make();
  let seen = 0;
  const slow = (_: string, bytes: Uint8Array): Promise<void> | undefined => {
    seen += bytes.length;
    return seen % (8 * MiB) < bytes.length ? new Promise((resolve) => setTimeout(resolve, 10)) : undefined;
  };
  const words = ["head", "-c", "100M", "/dev/zero"];
  const { result, grown } = await flood(room, {
    words,
    onOutput: slow,
    keep: { head: Number.MAX_SAFE_INTEGER, tail: 0 },
  });
  assert.deepEqual([seen, result.stdout.total, result.cause], [100 * MiB, 100 * MiB, null]);
  assert.ok(grown < 150 * MiB, `the harness grew by ${grown}`);
  assert.ok(result.peak.memory_bytes < 128 * MiB, `the box held ${result.peak.memory_bytes}`);
});

test(
  "input that nobody reads stops at the window, and input that is read arrives complete",
  { skip },
  async () => {
    await using room = await Room.make();
    const [unread, read] = [{ bytes: 0 }, { bytes: 0 }];
    const deaf = await flood(room, { words: ["sleep", "1"], input: pieces(500, unread) });
    assert.ok(unread.bytes < 4 * MiB, `${unread.bytes} bytes were taken`);
    assert.equal(deaf.result.exit_code, 0);
    const { result, grown } = await flood(room, { words: ["wc", "-c"], input: pieces(80, read) });
    assert.equal(Buffer.from(result.stdout.head).toString().trim(), String(80 * MiB));
    assert.ok(grown < 150 * MiB, `the harness grew by ${grown}`);
  },
);

test("twenty calls at once each have their own output and end", { skip }, async () => {
  await using room = await Room.make();
  const box = await room.box();
  const one = async (n: number): Promise<ExecResult> =>
    box.exec(
      {
        words: ["bash", "-c", `for i in 1 2 3; do echo ${n}; sleep 0.05; done; exit ${n}`],
        timeoutMs: 20_000,
        keep: { head: 1000, tail: 0 },
      },
      new AbortController().signal,
    );
  const results = await Promise.all(Array.from({ length: 20 }, (_, n) => one(n)));
  for (const [n, { exit_code, stdout }] of results.entries())
    assert.deepEqual([exit_code, Buffer.from(stdout.head).toString()], [n, `${n}\n`.repeat(3)]);
});

test(
  "when more calls run at once than allowed, the excess ones end with a reason and the box continues",
  { skip },
  async () => {
    await using room = await Room.make();
    const box = await room.box();
    const signal = new AbortController().signal;
    const one = (): Promise<ExecResult> =>
      box.exec({ words: ["sleep", "1"], timeoutMs: 20_000, keep: { head: 1000, tail: 0 } }, signal);
    const results = await Promise.all(Array.from({ length: 80 }, one));
    const refused = results.filter(({ exit_code }) => exit_code !== 0);
    assert.ok(refused.length >= 16, `${refused.length} refused`);
    assert.deepEqual([...new Set(refused.map(({ cause }) => cause))], ["pids"]);
    assert.equal((await one()).exit_code, 0);
  },
);

test("the disk budget ends running commands, and stays in force afterwards", { skip }, async () => {
  await using room = await Room.make();
  const [home, stateDir] = ["home", "state"].map((name) => path.join(room.root, name)) as [string, string];
  const maker = {
    engine,
    root: ROOT,
    uid: process.getuid?.() ?? 0,
    home,
    stateDir,
    onWarning: () => undefined,
  };
  const signal = new AbortController().signal;
  const limits = { memory: 256 * MiB, cpus: null, pids: 128 };
  const request = {
    workspace: room.W,
    mode: "workspace-write" as const,
    image: null,
    limits,
    runtime: null,
    isolation: "bind" as const,
    keep: null,
  };
  const budget = { growth: 128 * MiB, floor: 0, inodes: 0 };
  await using box = await startBox(maker, { ...request, watchChanges: false, budget }, signal);
  const exec = (line: string): Promise<ExecResult> =>
    box.exec({ words: ["bash", "-c", line], timeoutMs: 20_000, keep: { head: 1000, tail: 0 } }, signal);
  const grow = "for i in $(seq 120); do head -c 8M /dev/zero >> big; sleep 0.04; done";
  for (const round of ["first", "second"]) {
    const { cause, exit_code, killed } = await exec(grow);
    assert.deepEqual([cause, exit_code, killed], ["disk", 137, true], round);
  }
  assert.ok((await stat(room.at("big"))).size < 900 * MiB);
  await exec("rm -f big");
  const { cause } = await exec("sleep 0.6; head -c 8M /dev/zero > small");
  assert.equal(cause, null, "the twin: room was made");
});
