import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Box, ExecResult } from "../../../src/core/ports.ts";
import { contentsOf, isSettled, type Listing, runStreaming } from "../../../src/search/files/box-files.ts";
import { listingIn } from "../../../src/search/files/workspace-listing.ts";
import { Sieve } from "../../../src/search/files/workspace-scan.ts";
import { fakeBox } from "../../fakes/box.ts";
import { hostBox } from "../../fakes/host-box.ts";
import { gnu, never, RULES } from "../../fixtures/index.ts";
import { scratch } from "../../fixtures/scratch.ts";

const files = { "a.ts": "a", "b/c.ts": "c" };

const listed = (box: Box, known: Listing["rules"] = []): Promise<Listing> =>
  listingIn({ box, rules: RULES, largest: 100, known, signal: never });

async function contents(box: Box): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { path, bytes } of contentsOf(box, Object.keys(files), { most: 100, signal: never }))
    found.push(`${path} ${bytes?.toString() ?? "-"}`);
  return found;
}

/** A box whose commands all end with this result, whatever they did. */
const ending = (box: Box, end: Partial<ExecResult>): Box => ({
  ...box,
  exec: async (request, signal) => ({ ...(await box.exec(request, signal)), ...end }),
});

test("without a usable find the files are listed another way", async () => {
  for (const code of [1, 127]) {
    const { files: found } = await listed(fakeBox({ files, commands: { find: () => code } }));
    assert.deepEqual([...found.keys()].toSorted(), Object.keys(files), String(code));
  }
});

const tar = (said: string) => fakeBox({ files, commands: { tar: async ({ err }) => (await err(said), 2) } });

test("without a usable tar the files are read another way; a silent tar had nothing to read", async () => {
  assert.deepEqual(await contents(tar("tar: unrecognized option")), ["a.ts a", "b/c.ts c"]);
  assert.deepEqual(await contents(tar("")), []);
});

test(
  "a box out of memory or disk space is an error, never a partial result that looks complete",
  { skip: gnu },
  async () => {
    await using place = await scratch(files);
    for (const cause of ["memory", "disk"] as const) {
      const box = ending(hostBox(place.path), { cause, exit_code: 2, reason: `no ${cause}` });
      await assert.rejects(listed(box), new RegExp(`listing files in the box failed: no ${cause}`));
      await assert.rejects(contents(box), new RegExp(`reading files in the box failed: no ${cause}`));
    }
  },
);

test("a name that leads elsewhere is refused from any box", async () => {
  const box = fakeBox({ files, commands: { find: () => 127 } });
  for (const name of ["..", "../a.ts", "/etc/passwd", "b//c.ts", ""]) {
    const entry = { name, kind: "file", mode: 0o644, size: 1, modified: 1 } as const;
    const lying: Box = { ...box, list: () => Promise.resolve({ kind: "ok", value: [entry] }) };
    await assert.rejects(listed(lying), /cannot be read/, name);
  }
});

test("rules as recent as the last look are read again", { skip: gnu }, async (t) => {
  await using place = await scratch({ ".gitignore": "x\n" });
  const { ctimeMs } = await stat(place.at(".gitignore"));
  t.mock.timers.enable({ apis: ["Date"], now: ctimeMs + 50 });
  const box = hostBox(place.path);
  const { rules } = await listed(box);
  assert.deepEqual((await listed(box, rules)).rules, rules);
  assert.deepEqual(box.started, ["find", "tar", "find", "tar"]);
  t.mock.timers.setTime(ctimeMs + 3000);
  await listed(box, rules);
  assert.deepEqual(box.started.slice(4), ["find"]);
});

const at = (ctimeMs: number, lookedAt: number): boolean =>
  isSettled({ size: 1, mtimeMs: 1, ctimeMs, ino: 1 }, lookedAt);

test("a time stamp proves nothing within its clock's resolution, or where there is none", () => {
  assert.deepEqual([at(5000.5, 5100.5), at(5000.5, 5101)], [false, true]);
  assert.deepEqual([at(5000, 7100), at(5000, 7101)], [false, true], "a clock of whole seconds");
  assert.equal(at(0, Number.MAX_SAFE_INTEGER), false);
});

const guarded = (name: string, atTop: boolean): boolean => atTop && name === "hooks";

test("a folder that the host obeys only at the top is entered further down", () => {
  const sieve = new Sieve({ ...RULES, guarded }, new Map(), 100);
  assert.deepEqual([sieve.enters("hooks"), sieve.enters("src/hooks")], [false, true]);
});

test("a command whose output is no longer read is ended", { timeout: 20_000 }, async () => {
  const box = fakeBox({
    commands: {
      find: async ({ out, signal }) => {
        while (!signal.aborted) {
          await out("x");
          await sleep(1);
        }
        return 0;
      },
    },
  });
  const find = runStreaming(box, { words: ["find"], folder: box.workspace }, never);
  for await (const piece of find.output) {
    assert.ok(piece.length > 0);
    break;
  }
  assert.equal((await find.ended).result.cause, "user");
});
