import assert from "node:assert/strict";
import { constants } from "node:os";
import test from "node:test";
import { HarnessError } from "../../src/core/errors.ts";
import { RunnerClient } from "../../src/boxes/runner-client.ts";
import { decodeFields, numberIn, REPLY, REQUEST, textIn } from "../../src/boxes/runner-protocol.ts";
import * as files from "../../src/boxes/runner-files.ts";
import { changeListOf, type FoundChange } from "../../src/boxes/runner-files.ts";
import { KEY, type ScriptedRunner, scriptedRunner } from "./scripted-runner.ts";
import { bytesOfText, textOfBytes } from "../../src/core/raw-data.ts";
import type { Change } from "../../src/core/ports.ts";
import { fc } from "../fixtures/property.ts";

const opened = (): ScriptedRunner & { readonly client: RunnerClient } => {
  const runner = scriptedRunner();
  return { ...runner, client: new RunnerClient(runner.stream, KEY) };
};

function entry(kind: string, name: Buffer | string, size = 0): Buffer {
  const head = Buffer.alloc(23);
  const bytes = Buffer.from(name as string);
  head.write(kind, "latin1");
  head.writeUInt32LE(0o640, 1);
  head.writeBigUInt64LE(BigInt(size), 5);
  head.writeBigUInt64LE(1_700_000_000n, 13);
  head.writeUInt16LE(bytes.length, 21);
  return Buffer.concat([head, bytes]);
}

/** With so many bytes of the path before. */
function change(what: string, kind: string, name: string, shared = 0): Buffer {
  const head = Buffer.alloc(14);
  head.write(what + kind, "latin1");
  head.writeUInt32LE(0o755, 2);
  head.writeUInt32LE(shared, 6);
  head.writeUInt32LE(Buffer.byteLength(name), 10);
  return Buffer.concat([head, Buffer.from(name)]);
}

test("a file arrives in pieces, with its whole size", async () => {
  const { client, reply, request } = opened();
  const reading = files.readFileIn(client, "/w/a", { offset: 5, limit: 9 });
  const { call, payload } = await request(REQUEST.read);
  const fields = decodeFields(payload);
  assert.deepEqual([textIn(fields, "p"), numberIn(fields, "o"), numberIn(fields, "n")], ["/w/a", 5, 9]);
  reply(REPLY.data, call, Buffer.from("one "));
  reply(REPLY.data, call, Buffer.from("two"));
  reply(REPLY.end, call, [
    ["e", 0],
    ["z", 1234],
  ]);
  assert.deepEqual(await reading, { content: Buffer.from("one two"), size: 1234 });
});

test("a refusal has the system's error name, the operation and the path", async () => {
  const { client, reply, request } = opened();
  const reading = files.readFileIn(client, "/w/a");
  const { call } = await request(REQUEST.read);
  reply(REPLY.end, call, [
    ["e", constants.errno.EROFS],
    ["w", "read"],
  ]);
  await assert.rejects(reading, (thrown: unknown) => {
    assert.ok(thrown instanceof files.FileRefused);
    assert.deepEqual([thrown.code, thrown.path, thrown.message], ["EROFS", "/w/a", "/w/a: read: EROFS"]);
    return true;
  });
});

test("impossible file names are refused before the runner is asked", async () => {
  const { client, received } = opened();
  for (const [name, code] of [
    ["/w/a\0b", "EINVAL"],
    [`/${"ä".repeat(2048)}`, "ENAMETOOLONG"],
  ] as const)
    for (const asking of [
      files.readFileIn(client, name),
      files.writeFileIn(client, name, Buffer.alloc(1)),
      files.statIn(client, name),
      files.listIn(client, name),
    ])
      await assert.rejects(asking, { name: "FileRefused", code });
  assert.deepEqual(received, []);
});

test("entries keep names that are not text, and anything but a file, folder or link is odd", async () => {
  const { client, reply, request } = opened();
  const listing = files.listIn(client, "/w");
  const { call } = await request(REQUEST.list);
  const data = Buffer.concat([
    entry("f", Buffer.from([97, 255]), 2 ** 40),
    entry("d", ""),
    entry("l", "ä"),
    entry("o", "x\ny"),
  ]);
  reply(REPLY.data, call, data.subarray(0, 30));
  reply(REPLY.data, call, data.subarray(30));
  reply(REPLY.end, call, [["e", 0]]);
  assert.deepEqual(
    (await listing).map(({ kind, name, size, mode, modified }) => [kind, name, size, mode, modified]),
    [
      ["file", "a\uDCFF", 2 ** 40, 0o640, 1_700_000_000],
      ["folder", "", 0, 0o640, 1_700_000_000],
      ["link", "ä", 0, 0o640, 1_700_000_000],
      ["odd", "x\ny", 0, 0o640, 1_700_000_000],
    ],
  );
});

test("stat names the entry as list does, and an answer without an entry is a refusal", async () => {
  const one = opened();
  const asking = files.statIn(one.client, "/w/sub/a");
  const { call } = await one.request(REQUEST.stat);
  one.reply(REPLY.data, call, entry("f", "/w/sub/a", 3));
  one.reply(REPLY.end, call, [["e", 0]]);
  assert.equal((await asking).name, "a");
  const other = opened();
  const empty = files.statIn(other.client, "/w/a");
  other.reply(REPLY.end, (await other.request(REQUEST.stat)).call, [["e", 0]]);
  await assert.rejects(empty, { code: "EIO" });
});

test("changes are read with their kinds, and marked as incomplete when they are", async () => {
  const { client, reply, request } = opened();
  const asking = files.changesIn(client);
  const { call } = await request(REQUEST.changes);
  reply(
    REPLY.data,
    call,
    Buffer.concat([change("A", "f", "new"), change("M", "o", "sub/ä"), change("D", "l", "x", 4)]),
  );
  reply(REPLY.end, call, [
    ["e", 0],
    ["i", 1],
  ]);
  const { changes, incomplete } = await asking;
  assert.deepEqual(
    [[...changes].map(({ what, kind, path }) => [what, kind, path].join(" ")), incomplete],
    [["added file new", "modified odd sub/ä", "deleted link sub/x"], true],
  );
});

test("content is sent in pieces with an end, and an answer of another type is an error", async () => {
  const { client, reply, request, received } = opened();
  const writing = files.writeFileIn(client, "/w/a", Buffer.alloc(150_000), 0o600);
  const { call } = await request(REQUEST.stdinEnd);
  const [begin, ...rest] = received;
  assert.equal(numberIn(decodeFields(begin?.payload ?? Buffer.alloc(0)), "m"), 0o600);
  assert.equal(
    rest.reduce((sum, { payload }) => sum + payload.length, 0),
    150_000,
  );
  reply(REPLY.hello, call);
  await assert.rejects(writing, HarnessError);
});

/** Few letters, so that paths share much; one of them is before the slash, one is no text. */
const name = fc
  .array(fc.constantFrom(0x61, 0x62, 0x2e, 0xff, 0xc3), { minLength: 1, maxLength: 4 })
  .map((bytes) => Buffer.from(bytes));
const what = fc.constantFrom<Change["what"]>("added", "modified", "deleted");
const kind = fc.constantFrom<Change["kind"]>("file", "link", "odd", "folder");
const tree = fc.array(fc.tuple(fc.array(name, { maxLength: 3 }), name, what, kind, fc.nat(0o7777)), {
  maxLength: 40,
});

test("all found changes are returned in byte order of their paths, on every read", () => {
  fc.assert(
    fc.property(tree, (entries) => {
      const folders = new Map<string, Buffer>();
      const found = entries.map(([parts, own, is, type, mode]): FoundChange => {
        const folder = Buffer.concat(
          parts.flatMap((part, at) => (at === 0 ? [part] : [Buffer.from("/"), part])),
        );
        const key = folder.toString("latin1");
        folders.set(key, folders.get(key) ?? folder);
        return { what: is, kind: type, mode, folder: folders.get(key) ?? folder, name: own };
      });
      const wanted = found
        .map(({ folder, name: own, ...rest }) => ({
          ...rest,
          path: textOfBytes(folder.length === 0 ? own : Buffer.concat([folder, Buffer.from("/"), own])),
        }))
        .toSorted((a, b) => Buffer.compare(bytesOfText(a.path), bytesOfText(b.path)));
      const list = changeListOf(found);
      for (let times = 0; times < 2; times += 1)
        assert.deepEqual(
          [...list].map(({ path, mode, kind: type, what: is }) => ({ what: is, kind: type, mode, path })),
          wanted.map(({ path, mode, kind: type, what: is }) => ({ what: is, kind: type, mode, path })),
        );
    }),
  );
});
