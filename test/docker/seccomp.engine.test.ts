import assert from "node:assert/strict";
import test from "node:test";
import { ownerLabels } from "../../src/boxes/box-record.ts";
import { runOnce } from "../../src/docker/engine-health.ts";
import { PRELUDE } from "../escape/kernel-calls.ts";
import { engine } from "../fixtures/engine-api.ts";
import { image, ROOT, skip } from "../fixtures/engine.ts";

/** Answers of the kernel to calls made by number, one word each: the value, or the name of the error. */
const START = `${PRELUDE}import sys
HERE = -100
os.chdir("/tmp")
`;

async function python(code: string): Promise<string> {
  const plan = { root: ROOT, image, memory: 2 ** 28, pids: 64, labels: ownerLabels(64_323) };
  const { stdout, stderr } = await runOnce(
    engine,
    { ...plan, argv: ["python3", "-c", START + code] },
    30_000,
  );
  return `${stdout}${stderr}`.trim();
}

const words = (calls: readonly string[]): Promise<string> => python(`print(*[${calls.join(", ")}])`);

const socket = (family: number, type: number, protocol: number): string =>
  `call(41, 198, ${family}, ${type}, ${protocol})`;

test(
  "unix, internet and route sockets can be created, other families and protocols cannot",
  { skip },
  async () => {
    const cloexec = 0o2000000;
    const good = [
      socket(1, 1, 0),
      socket(1, 5, 0),
      socket(2, 1 + cloexec, 6),
      socket(2, 2, 17),
      socket(10, 1, 0),
    ];
    assert.equal(await words([...good, socket(16, 3, 0)]), "ok ok ok ok ok ok");
    const families = [3, 5, 15, 17, 21, 29, 30, 31, 38, 40, 44].map((family) => socket(family, 2, 0));
    const protocols = [
      socket(16, 3, 9),
      socket(2, 3, 1),
      socket(2, 1, 132),
      socket(2, 1, 262),
      socket(2, 6, 0),
    ];
    const wide = socket(2 ** 32 + 38, 5, 0);
    assert.equal(await words([...families, ...protocols, wide]), Array(17).fill("EPERM").join(" "));
  },
);

test("calls that reach into the kernel or other processes are refused", { skip }, async () => {
  const refused = {
    ptrace: "call(101, 117, 0, 0, 0, 0)",
    process_vm_readv: "call(310, 270, 1, 0, 0, 0, 0, 0)",
    keyctl: "call(250, 219, 0, -3, 0)",
    add_key: "call(248, 217, b'user', b'a', b'b', 1, -3)",
    vmsplice: "call(278, 75, 1, 0, 0, 0)",
    bpf: "call(321, 280, 0, 0, 0)",
    perf_event_open: "call(298, 241, 0, 0, 0, 0, 0)",
    mount: "call(165, 40, b'none', b'/tmp', b'tmpfs', 0, 0)",
    unshare: "call(272, 97, 0x10000000)",
    setns: "call(308, 268, 0, 0)",
    clone_newuser: "call(56, 220, 0x10000000 | 17, 0, 0, 0, 0)",
    open_by_handle_at: "call(304, 265, 0, 0, 0)",
    kexec_load: "call(246, 104, 0, 0, 0, 0)",
    pivot_root: "call(155, 41, b'/', b'/')",
  };
  assert.equal(
    await words(Object.values(refused)),
    Object.keys(refused)
      .map(() => "EPERM")
      .join(" "),
  );
  assert.equal(
    await words(["call(39, 172)", "call(334, 293, 0, 0, 0, 0)"]),
    "ok EINVAL",
    "twins reach the kernel",
  );
});

test("calls that libraries can do without are reported as missing", { skip }, async () => {
  const missing = ["call(435, 435, 0, 0)", "call(437, 437, HERE, b'/tmp', 0, 0)", "call(425, 425, 1, 0)"];
  const more = ["call(426, 426, 0, 0, 0, 0, 0, 0)", "call(447, 447, 0)", "call(323, 282, 0)"];
  assert.equal(await words([...missing, ...more]), Array(6).fill("ENOSYS").join(" "));
});

/** In a child: the first process of this container is the one that asks. */
const asChild = (calls: readonly string[]): Promise<string> =>
  python(`if os.fork(): os.wait(); os._exit(0)
import threading
mask, idle = b"\\xff" * 128, (3 << 13) | 7
print(*[${calls.join(", ")}], flush=True)`);

const affinity = (pid: string): string => `call(203, 122, ${pid}, 128, mask)`;
const turns = (which: string, who: string): string => `call(251, 30, ${which}, ${who}, idle)`;

test(
  "processor affinity and disk priority can be set for oneself, never for the first process",
  { skip },
  async () => {
    const dressed = ["1", "2**32 + 1", "(1 << 62) + 1", "(7 << 40) + 1"];
    const others = [
      turns("1", "1"),
      turns("1", "2**32 + 1"),
      turns("3", "os.getuid()"),
      turns("2", "1"),
      turns("2", "0"),
    ];
    const refused = [...dressed.map(affinity), ...others];
    assert.equal(await asChild(refused), refused.map(() => "EPERM").join(" "));
    const own = ["0", "os.getpid()", "threading.get_native_id()"].map(affinity);
    assert.equal(await asChild([...own, turns("1", "0")]), "ok ok ok ok");
  },
);

const by = (mode: string, name: string): readonly string[] => [
  `call(90, None, b'f', ${mode})`,
  `call(91, 52, fd, ${mode})`,
  `call(268, 53, HERE, b'f', ${mode})`,
  `call(85, None, b'${name}1', ${mode})`,
  `call(2, None, b'${name}2', 0o102, ${mode})`,
  `call(257, 56, HERE, b'${name}3', 0o102, ${mode})`,
  `call(257, 56, HERE, b'/tmp', 0o20200002, ${mode})`,
  `call(83, None, b'${name}4', ${mode})`,
  `call(258, 34, HERE, b'${name}5', ${mode})`,
  `call(133, None, b'${name}6', 0o100000 | ${mode}, 0)`,
  `call(259, 33, HERE, b'${name}7', 0o010000 | ${mode}, 0)`,
];

/** The answers, then what carries a set-id bit after all. */
const table = (mode: string, name: string): Promise<string> => {
  const find = 'import subprocess; subprocess.run(["find", "/tmp", "-perm", "/6000"])';
  return python(`fd = os.open("f", os.O_CREAT | os.O_RDWR)
print(*[${by(mode, name).join(", ")}], flush=True)
${find}`);
};

test("no call can set a set-id bit, and the same call without it works", { skip }, async () => {
  for (const mode of ["0o4755", "0o2755", "0o6755"])
    assert.match(await table(mode, "x"), /^((EPERM|ENOSYS) ?){11}$/);
  assert.match(await table("0o755", "y"), /^((ok|ENOSYS) ?){11}$/);
  assert.match(await table("0o1755", "z"), /^((ok|ENOSYS) ?){11}$/);
});

test("a file can be opened, whatever is passed as its mode", { skip }, async () => {
  assert.equal(await words(["call(257, 56, HERE, b'/etc/passwd', 0, 0o6777)"]), "ok");
});

const node = (type: string, device: number): string =>
  `call(259, 33, HERE, b'${type}', ${type} | 0o600, ${device})`;

test("devices cannot be created, FIFOs and sockets can", { skip }, async () => {
  const words4 = [node("0o020000", 0x103), node("0o060000", 0x800), node("0o010000", 0), node("0o140000", 0)];
  assert.equal(await words(words4), "EPERM EPERM ok ok");
});

const ioctl = (request: string): string => `call(16, 29, slave, ${request}, b"x")`;

test("nothing can be typed into a terminal, not even with a disguised request number", { skip }, async () => {
  const pty = "import pty, termios, fcntl, array\nmaster, slave = pty.openpty()\n";
  const dressed = "0x100005412";
  const bad = [ioctl("0x5412"), ioctl("0x541c"), ioctl(dressed), ioctl("0xff0000005412")];
  assert.equal(await python(`${pty}print(${bad.join(", ")})`), "EPERM EPERM EPERM EPERM");
  const good = `fcntl.ioctl(slave, termios.TIOCGWINSZ, bytes(8)); fcntl.ioctl(slave, termios.FIONREAD, bytes(4))`;
  const more = `fcntl.ioctl(slave, termios.TIOCEXCL); fcntl.ioctl(slave, termios.FIOCLEX); termios.tcgetattr(slave)`;
  assert.equal(await python(`${pty}${good}; ${more}; print("ok")`), "ok");
});

test("32-bit calls, which the profile cannot inspect, end the process", { skip }, async (context) => {
  const source = `int main(void){long r;__asm__ volatile("int $0x80":"=a"(r):"a"(20));return 0;}`;
  const plan = { root: ROOT, image, memory: 2 ** 28, pids: 64, labels: ownerLabels(64_323) };
  const build = `uname -m; cd /tmp; echo '${source}' >a.c; sed 's/int .0x80/nop/' a.c >b.c; cc -o a a.c && cc -o b b.c && ./b && echo twin; ./a; echo $?`;
  const { stdout } = await runOnce(engine, { ...plan, argv: ["sh", "-c", build] }, 30_000);
  if (!stdout.startsWith("x86_64")) return context.skip("only x86-64 has them");
  assert.match(stdout, /^x86_64\ntwin\n(159|139)\n$/);
});

const WORK: Readonly<Record<string, string>> = {
  "node, its threads and its sockets": `node -e '
    const { Worker } = require("worker_threads"); const net = require("net");
    const server = net.createServer((s) => s.end("hello")).listen(0, "127.0.0.1", () =>
      net.connect(server.address().port, "127.0.0.1").on("data", () => new Worker("process.exit(0)", { eval: true })
        .on("exit", () => process.exit(0))));'`,
  "python, its processes and threads": `python3 -c '
import subprocess, threading, multiprocessing, socket, tempfile
subprocess.run(["true"], check=True); t = threading.Thread(target=print); t.start(); t.join()
p = multiprocessing.Process(target=print); p.start(); p.join(); assert p.exitcode == 0
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"; tempfile.TemporaryFile().write(b"x")'`,
  "programs that choose their processors and turns": `taskset -c 0 nproc >/dev/null && ionice -c 3 true && nice -n 3 chrt -i 0 true && python3 -c '
import os; os.sched_setaffinity(0, os.sched_getaffinity(0)); os.sched_setaffinity(os.getpid(), os.sched_getaffinity(0))' &&
    printf '#define _GNU_SOURCE\n#include <pthread.h>\nvoid *f(void *x) { cpu_set_t s; pthread_getaffinity_np(pthread_self(), sizeof s, &s); return (void *)(long)pthread_setaffinity_np(pthread_self(), sizeof s, &s); }\nint main(void) { pthread_t t; void *r; pthread_create(&t, 0, f, 0); pthread_join(t, &r); return r != 0; }' >t.c && cc -pthread -o t t.c && ./t`,
  git: "git init -q r && cd r && echo a >a && git add a && git -c user.name=a -c user.email=a@b commit -qm a && git status --short",
  "the compiler and make":
    "printf 'a: a.c\\n\\tcc -o a a.c -pthread\\n' >Makefile && echo 'int main(){return 0;}' >a.c && make -s && ./a",
  "archives and modes":
    "mkdir d && echo x >d/f && chmod 755 d && chmod +x d/f && tar czf d.tgz d && tar xzf d.tgz && cp -a d e && mkfifo p",
  "npm and rg": "npm --version && rg --version && jq -n 1 && ls -la / && ps aux",
};

for (const [what, command] of Object.entries(WORK))
  test(`${what}: all of it works under the profile`, { skip }, async () => {
    const plan = { root: ROOT, image, memory: 2 ** 29, pids: 128, labels: ownerLabels(64_323) };
    const { exit_code, stderr } = await runOnce(
      engine,
      { ...plan, argv: ["bash", "-ec", `cd /tmp\n${command}`] },
      30_000,
    );
    assert.deepEqual({ exit_code, stderr }, { exit_code: 0, stderr: "" });
  });

test("a container without the profile does what the profile refuses", { skip }, async () => {
  const calls = ["call(90, 0, b'f', 0o4755)", "call(272, 97, 0x10000000)", "call(101, 117, 0, 0, 0, 0)"];
  const code = `${START}open("f", "w")\nprint(*[${calls.join(", ")}])`;
  const container = await engine.api.createContainer({
    Image: image,
    Entrypoint: ["python3", "-c", code],
    User: "65534:65534",
    Labels: ownerLabels(64_323),
    HostConfig: {
      NetworkMode: "none",
      CapDrop: ["ALL"],
      SecurityOpt: ["seccomp=unconfined"],
      Tmpfs: { "/tmp": "" },
    },
  });
  try {
    await container.start();
    await container.wait();
    const log = (await container.logs({ stdout: true })).subarray(8).toString();
    assert.match(log, process.arch === "x64" ? /^ok \S+ ok\n$/ : /ok\n$/);
  } finally {
    await container.remove({ force: true });
  }
});
