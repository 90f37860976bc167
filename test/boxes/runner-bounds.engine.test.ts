import assert from "node:assert/strict";
import test from "node:test";
import type { RunnerClient } from "../../src/boxes/runner-client.ts";
import { readFileIn, writeFileIn } from "../../src/boxes/runner-files.ts";
import { decodeFields, numberIn, REPLY, REQUEST } from "../../src/boxes/runner-protocol.ts";
import { readSeen } from "../../src/boxes/runner-command.ts";
import type { Canary, Observed } from "../../src/core/behaviour.ts";
import { leased, started } from "../fixtures/bare-runner.ts";
import { skip } from "../fixtures/engine.ts";

const KEY: Canary = { name: "a key", kind: "file", at: "/tmp/key" };

interface Said {
  readonly out: string;
  readonly seen: Observed;
}

interface More {
  readonly observed?: boolean;
  /** With its first output. */
  readonly onReady?: () => void;
}

async function run(client: RunnerClient, words: readonly string[], more: More = {}): Promise<Said> {
  const parts: Buffer[] = [];
  const observe = more.observed === true ? { observe: { canaries: [KEY], trees: [] } } : {};
  const plain = { folder: "/tmp", env: { PATH: "/usr/local/bin:/usr/bin:/bin" }, timeoutMs: 60_000 };
  const bounds = { head: 2 ** 16, tail: 0, terminal: false, input: undefined };
  const listener = {
    onOutput: (_: unknown, __: unknown, piece: Buffer) => {
      parts.push(piece);
      more.onReady?.();
    },
  };
  const { seen = [] } = await client.run({ words, ...plain, ...bounds, ...observe }, listener).ended;
  return { out: Buffer.concat(parts).toString(), seen: readSeen(seen, [KEY]) };
}

/** The runner's own memory at its most, in KiB, as everybody may read it. */
const peak = async (client: RunnerClient): Promise<number> =>
  Number(/VmHWM:\s+(\d+)/.exec((await run(client, ["cat", "/proc/1/status"])).out)?.[1]);

async function snapshot(client: RunnerClient, root: string, most: number): Promise<readonly number[]> {
  const { end } = await client.ask(REQUEST.snapshot, [
    ["p", root],
    ["n", most],
  ]);
  assert.equal(end.type, REPLY.end);
  const said = decodeFields(end.payload);
  return [numberIn(said, "e"), numberIn(said, "z"), numberIn(said, "i")];
}

const TREES = `
import os
def chain(top, levels, files):
    os.mkdir(top); os.chdir(top)
    for _ in range(levels):
        for n in range(files): os.close(os.open("%s%d" % ("z" * 200, n), os.O_CREAT))
        os.mkdir("a"); os.chdir("a")
chain("/tmp/deep", 60, 1000)
chain("/tmp/small", 10, 20)
`;

test("the names listed in a scan of a tree are bounded over all its folders", { skip }, async () => {
  await using box = await leased();
  const client = await started(box);
  assert.equal((await run(client, ["python3", "-c", TREES])).out, "");
  assert.deepEqual(
    await snapshot(client, "/tmp/small", 200),
    [0, 200, 0],
    "a tree within its bound is whole",
  );
  assert.deepEqual(await snapshot(client, "/tmp/small", 199), [0, 199, 1], "one more is reported");
  const before = await peak(client);
  const [error, , incomplete] = await snapshot(client, "/tmp/deep", 1000);
  assert.deepEqual([error, incomplete], [0, 1]);
  const grown = (await peak(client)) - before;
  assert.ok(grown < 4096, `${grown} KiB for 2,000 names of 200 bytes`);
  client.close();
});

/** Says what is made in a folder, until a name that ends it. */
const WATCH = `
import ctypes, os, struct
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(0); libc.inotify_add_watch(fd, b"/tmp", 0x100)
print("ready", flush=True)
while True:
    data, at = os.read(fd, 4096), 0
    while at < len(data):
        _, _, _, length = struct.unpack_from("iIII", data, at)
        name = data[at + 16:at + 16 + length].rstrip(b"\\0").decode(); at += 16 + length
        print(name, flush=True)
        if name == "end": raise SystemExit
`;

test("the temporary name used for writing a file cannot be guessed from earlier ones", { skip }, async () => {
  await using box = await leased();
  const client = await started(box);
  const { promise: ready, resolve } = Promise.withResolvers<void>();
  const watched = run(client, ["python3", "-c", WATCH], { onReady: resolve });
  await ready;
  for (const text of ["one", "two", "three"]) await writeFileIn(client, "/tmp/f.txt", Buffer.from(text));
  await run(client, ["touch", "/tmp/end"]);
  const names = (await watched).out.split("\n").filter((name) => name.includes("harness"));
  assert.equal(new Set(names).size, 3, names.join(" "));
  for (const name of names) assert.match(name, /^\.harness-[0-9a-f]{16}\.tmp$/);
  assert.equal((await readFileIn(client, "/tmp/f.txt")).content.toString(), "three");
  assert.match((await run(client, ["ls", "-A", "/tmp"])).out, /^end\nf\.txt\n$/m, "no other file is left");
  client.close();
});

/** By number, on every architecture the same. Reads and makes, then what gives no content. */
const YOUNG = `
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
def openat2(folder, path, flags, mode=0, resolve=0):
    how = struct.pack("QQQ", flags, mode, resolve)
    fd = libc.syscall(437, folder, path, how, len(how))
    print(path.decode(), "ok" if fd >= 0 else ctypes.get_errno())
    return fd
openat2(-100, b"/etc/hostname", os.O_RDONLY)
openat2(-100, b"/tmp/made", os.O_CREAT | os.O_WRONLY, 0o600)
tmp = os.open("/tmp", os.O_PATH)
openat2(tmp, b"/made", os.O_WRONLY, 0, 0x10)
openat2(-100, b"/etc/passwd", os.O_PATH)
openat2(-100, b"/usr", os.O_DIRECTORY)
libc.syscall(425, 1, 0)
`;

test(
  "where the seccomp profile allows newer system calls, they are observed like the others",
  { skip },
  async () => {
    await using box = await leased('{"defaultAction":"SCMP_ACT_ALLOW"}');
    const client = await started(box);
    await writeFileIn(client, KEY.at, Buffer.from("not a key"));
    const { out, seen } = await run(client, ["python3", "-c", YOUNG], { observed: true });
    assert.equal(out, "/etc/hostname ok\n/tmp/made ok\n/made ok\n/etc/passwd ok\n/usr ok\n");
    const acts = seen.acts.flatMap((act) => ("path" in act ? [`${act.kind} ${act.path}`] : []));
    for (const told of ["read /etc/hostname", "make /tmp/made", "write /tmp/made"])
      assert.ok(acts.includes(told), `${told}: ${acts.join(", ")}`);
    assert.ok(!acts.some((act) => /passwd|usr$|write \/made/.test(act)), acts.join(", "));
    assert.ok(seen.acts.some((act) => act.kind === "call" && act.name === "io_uring_setup"));
    client.close();
  },
);
