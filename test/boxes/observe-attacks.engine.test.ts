import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Act, Canary, Observed } from "../../src/core/behaviour.ts";
import type { ExecResult } from "../../src/core/ports.ts";
import { skip } from "../fixtures/engine.ts";
import { OBSERVED_PROGRAMS } from "../fixtures/observed-programs.ts";
import { realBox } from "../fixtures/real-box.ts";

type Real = Awaited<ReturnType<typeof realBox>>;
const shared = { real: undefined as Real | undefined };
const KEY: Canary = { name: "a key", kind: "file", at: "/home/box/.ssh/id_ed25519" };
const NEVER = new AbortController().signal;

before(async () => {
  if (skip !== false) return;
  shared.real = await realBox(OBSERVED_PROGRAMS);
  await shared.real.box.write(KEY.at, Buffer.from("not a key"));
  const built = await observed(
    `for file in *.c; do gcc -O1 -static -pthread -w -o /tmp/\${file%.c} $file || exit; done`,
  );
  assert.equal(built.exit_code, 0, built.said);
});
after(() => shared.real?.[Symbol.asyncDispose]());

type Seen = ExecResult & { readonly observed: Observed; readonly said: string };

async function observed(script: string, more: { readonly timeoutMs?: number } = {}): Promise<Seen> {
  const { box } = shared.real ?? assert.fail();
  const request = { words: ["bash", "-c", script], timeoutMs: 60_000, keep: { head: 8000, tail: 0 } };
  const result = await box.exec({ ...request, ...more, observe: { canaries: [KEY] } }, NEVER);
  const { observed: seen, stdout, stderr } = result;
  assert.equal(seen?.by, "calls");
  return { ...result, observed: seen, said: Buffer.concat([stdout.head, stderr.head]).toString() };
}

const calls = ({ acts }: Observed): readonly string[] =>
  acts.flatMap((act) => (act.kind === "call" ? [`${act.name} ${act.detail}`] : []));
const paths = ({ acts }: Observed, kind: Act["kind"]): readonly string[] =>
  acts.flatMap((act) => (act.kind === kind && "path" in act ? [act.path] : []));
const sockets = ({ acts }: Observed): readonly string[] =>
  acts.flatMap((act) =>
    "address" in act ? [`${act.kind} ${act.family} ${act.address} ${act.port ?? "-"}`] : [],
  );

test("the observer cannot be ended, traced or read, and attempts are reported", { skip }, async () => {
  const { said, observed: seen } =
    await observed(`kill -9 1; echo alive; sleep 60 & kill $!; kill -0 1; kill -CONT 0
    cat /proc/1/mem /proc/1/environ; ls /proc/1/fd; gdb -p 1; echo behind`);
  assert.match(said, /^alive/);
  assert.match(said, /behind/);
  assert.deepEqual(calls(seen), ["kill signal 9 to process 1, which is not its own"]);
  assert.ok(["/proc/1/mem", "/proc/1/environ"].every((path) => paths(seen, "read").includes(path)));
  const all = await observed("trap '' TERM; kill -TERM -1; echo alive");
  assert.deepEqual([all.said, calls(all.observed)], ["alive\n", ["kill signal 15 to every process"]]);
  const ended = await observed("kill -9 $PPID; sleep 5; echo alive");
  assert.deepEqual([ended.said.includes("alive"), calls(ended.observed).length], [false, 1]);
  const again = await observed("cat ~/.ssh/id_ed25519");
  assert.equal(again.cause, "canary");
});

test("a path that changes between check and use hides no canary", { skip }, async () => {
  const { cause, observed: seen, said } = await observed("/tmp/race; echo behind");
  assert.deepEqual([cause, seen.touched?.canary, said], ["canary", "a key", ""]);
});

test(
  "programs run from memory, other ways to start processes, and threads are all observed",
  { skip },
  async () => {
    const { said, observed: seen } = await observed("/tmp/memory; /tmp/threads; :");
    assert.deepEqual(said.split("\n").slice(0, 3), ["said", "spawned", "vforked"]);
    assert.deepEqual(calls(seen), ["execveat runs a program that is no file"]);
    assert.ok(
      seen.processes.some(({ words }) => words[0]?.startsWith("/memfd:hidden") && words[1] === "said"),
    );
    const threads = seen.processes.find(({ words }) => words[0] === "/tmp/threads");
    const children = seen.processes
      .filter(({ parent }) => parent === threads?.pid)
      .map(({ words }) => words.join(" "));
    assert.deepEqual(children, ["echo spawned", "echo vforked"]);
    const read = seen.acts.filter((act) => act.pid === threads?.pid && act.kind === "read");
    assert.deepEqual(
      read.map((act) => ("path" in act ? act.path : "")),
      ["/etc/issue", "/etc/shells"],
    );
  },
);

test("a program's own seccomp filters hide nothing from observation", { skip }, async () => {
  const { said, observed: seen } = await observed("/tmp/filters");
  assert.equal(said, "listener 1\nallow 0 1\ntell 0 0\n");
  assert.ok(paths(seen, "read").includes("/etc/hostname"));
  const foreign = await observed("/tmp/foreign; echo $?; /tmp/foreign x; echo $?");
  assert.equal(foreign.observed.touched, null);
  assert.doesNotMatch(foreign.said, /^\d$/m);
});

test(
  "a process that makes itself unreadable is reported as such, and so are its canaries",
  { skip },
  async () => {
    const hides = `python3 -c 'import ctypes; ctypes.CDLL(None).prctl(4, 0); open("/tmp/made", "w")'`;
    const own = await observed(hides);
    assert.ok(calls(own.observed).some((call) => call === "prctl hides from observation"));
    const closed = "cp /bin/cat /tmp/closed; chmod 0111 /tmp/closed; /tmp/closed";
    const program = await observed(`${closed} /etc/hostname`);
    assert.ok(calls(program.observed).some((call) => call.startsWith("openat hides from observation")));
    assert.ok(program.observed.unseen.some((each) => each.includes("barred other processes")));
    const twin = await observed("cp /bin/cat /tmp/open; /tmp/open /etc/hostname");
    assert.deepEqual([twin.exit_code, calls(twin.observed)], [0, []]);
    const touches = await observed(`${closed} ~/.ssh/id_ed25519; sleep 9`);
    assert.deepEqual([touches.cause, touches.observed.touched?.pid === 0], ["canary", false]);
  },
);

test(
  "floods are bounded and counted, the box stays responsive, and a canary after one is reported",
  { skip },
  async () => {
    const { box } = shared.real ?? assert.fail();
    const flood = observed("/tmp/flood ~/.ssh/id_ed25519");
    const beside = await box.exec({ words: ["true"], timeoutMs: 9000, keep: { head: 9, tail: 0 } }, NEVER);
    assert.equal(beside.exit_code, 0);
    const { cause, observed: seen } = await flood;
    assert.equal(cause, "canary");
    assert.ok(
      seen.acts.length < 10_000 && seen.missed.acts > 20_000,
      `${seen.acts.length} and ${seen.missed.acts}`,
    );
    const bomb = await observed(":() { : | : & }; :; sleep 1", { timeoutMs: 5000 });
    assert.notEqual(bomb.observed.by, "none");
    const after = await observed("echo fine");
    assert.equal(after.said, "fine\n");
  },
);

test("odd names, arguments and folders are reported within bounds", { skip }, async () => {
  const { observed: seen } = await observed(`python3 -c 'import os
open(b"/tmp/\\xff", "w"); open("/tmp/./a/../b//c", "w") if os.makedirs("/tmp/b", exist_ok=True) else None
os.mkdir("/tmp/gone"); os.chdir("/tmp/gone"); os.rmdir("/tmp/gone")
try: open("x", "w")
except OSError: pass
os.chdir("/tmp")
for i in range(50): os.mkdir("d" * 100); os.chdir("d" * 100)
open("bottom", "w")'; bash -c ':' ${"y".repeat(400)} ${"z ".repeat(300)}`);
  const made = paths(seen, "make");
  assert.ok(made.includes("/tmp/\udcff"));
  assert.ok(made.some((path) => path.endsWith("/bottom")));
  assert.ok(made.every((path) => path.startsWith("/") && Buffer.byteLength(path) <= 1024));
  const long = seen.processes.find(({ words }) => words.some((word) => word.startsWith("yyy")));
  assert.ok(long !== undefined && Buffer.byteLength(long.words.join(" ")) <= 600);
  assert.ok(long.words.some((word) => word.endsWith("…")));
});

test("sockets of every kind are reported with their address", { skip }, async () => {
  const { observed: seen } = await observed(`python3 -c 'import socket as s
def tried(work):
    try: work()
    except OSError: pass
tried(lambda: s.socket().connect(("127.0.0.1", 9)))
tried(lambda: s.socket(s.AF_INET6).connect(("::ffff:127.0.0.1", 9)))
tried(lambda: s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 7)))
tried(lambda: s.socket(s.AF_INET, s.SOCK_DGRAM).sendmsg([b"x"], [], 0, ("127.0.0.2", 7)))
tried(lambda: s.socket(s.AF_UNIX).connect("/tmp/../tmp/none"))
tried(lambda: s.socket(s.AF_UNIX).connect("\\0name"))
one = s.socket(); one.bind(("127.0.0.1", 0)); one.listen(); s.socket().listen()'`);
  assert.deepEqual(sockets(seen), [
    "connect ip 127.0.0.1 9",
    "send ip 127.0.0.1 7",
    "send ip 127.0.0.2 7",
    "connect unix /tmp/none -",
    "connect unix @name -",
    "listen ip 127.0.0.1 0",
    "listen other a socket without an address of its own -",
  ]);
  assert.equal(seen.acts.find((act) => act.kind === "connect")?.times, 2);
});
