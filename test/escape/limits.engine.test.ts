// alone: it fills memory and processes
import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { type Attack, attacks, never } from "../fixtures/escape-cases.ts";
import type { Room } from "../fixtures/escape.ts";
import { python } from "./kernel-calls.ts";

const MiB = 2 ** 20;

const ended =
  (cause: string | null): NonNullable<Attack["denied"]> =>
  (_, { result, all }) =>
    assert.equal(result?.cause, cause, all.slice(-500));

/** What the box holds after the call, in bytes. */
async function holds(room: Room): Promise<number> {
  const { all } = await room.exec(
    "cat /sys/fs/cgroup/memory/memory.usage_in_bytes /sys/fs/cgroup/memory.current 2>/dev/null",
  );
  return Number(all);
}

const emptied: Attack["denied"] = async (room) => {
  const { all } = await room.exec(
    "ps axo args --no-headers | grep -c -E '^(sleep|python3|bash -c)'; cat /sys/fs/cgroup/pids/pids.current /sys/fs/cgroup/pids.current 2>/dev/null",
  );
  const [left, pids] = all.trim().split("\n").map(Number);
  assert.equal(left, 0, all);
  assert.ok((pids ?? 99) < 10, all);
};

/** The box: 256 MiB, 128 processes. */
const MEMORY: readonly Attack[] = [
  {
    name: "big allocation",
    run: `perl -e '$x="a"x(4<<30);print length $x'; echo rc=$?`,
    denied: (_, { result, all }) => {
      assert.ok(all.includes("rc=") && !all.includes("rc=0"), all);
      assert.ok(result?.cause === "memory" || /out of memory/i.test(all), "said to be out of memory");
    },
    twin: `perl -e '$x="a"x(64<<20); print length $x'`,
  },
  {
    name: "memory touched page by page",
    run: `python3 -c 'x = []\nfor i in range(1024): x.append(bytearray(1 << 20))\nprint("ALL")'`,
    denied: (room, ran) => {
      assert.doesNotMatch(ran.all, /ALL/);
      assert.ok((ran.result?.peak.memory_bytes ?? 0) > 128 * MiB);
      return ended("memory")(room, ran);
    },
    twin: `python3 -c 'x = bytearray(64 << 20)'`,
  },
  {
    name: "unnamed files in memory",
    run: python(
      `fd = os.memfd_create("x")\nfor i in range(1024): os.write(fd, b"x" * (1 << 20))\nprint("ALL", i + 1)`,
    ),
    denied: (room, ran) => {
      assert.doesNotMatch(ran.all, /^ALL 1024/m);
      return ended("memory")(room, ran);
    },
    twin: python(`os.write(os.memfd_create("x"), b"x" * (1 << 20))`),
  },
  {
    name: "every scratch folder filled completely, across calls",
    run: "for d in /tmp $HOME /dev/shm /run; do head -c 512M /dev/zero > $d/full 2>/dev/null && echo ENDLESS $d; done; true",
    denied: async (room, { all }) => {
      assert.doesNotMatch(all, /ENDLESS/);
      assert.ok((await holds(room)) < 200 * MiB, "half of the memory is left to programs");
      const next = await room.exec(
        `perl -e '$x="a"x(64<<20); print "enough"'; rm -f /tmp/full $HOME/full /dev/shm/full /run/full`,
      );
      assert.equal(next.all, "enough");
    },
    twin: "head -c 32M /dev/zero > /tmp/some; rm /tmp/some",
  },
  {
    name: "countless scratch files",
    run: `python3 -c '
import os
for i in range(200000): os.close(os.open(f"/tmp/n{i}", os.O_CREAT | os.O_WRONLY))
print("ALL")'; find /tmp -name 'n*' -delete; true`,
    denied: never(/ALL/),
    twin: "touch /tmp/a /tmp/b && rm /tmp/a /tmp/b",
  },
  {
    name: "System V segments that outlive their maker",
    run: python(`for i in range(4): print(call(29, 194, 0, 8 << 20, 0o1600))
libc.shmat.restype = ctypes.c_void_p
ids = [libc.shmget(0, ctypes.c_size_t(8 << 20), 0o1600) for _ in range(4)]
for one in ids: ctypes.memset(libc.shmat(one, None, 0), 1, 8 << 20)`),
    denied: async (room) => {
      const { all } = await room.exec("tail -n +2 /proc/sysvipc/shm | awk '$7 == 0 && $15 > 0' | wc -l");
      assert.equal(all.trim(), "0", "pages of a segment that nobody has");
    },
    twin: "ipcs -m",
  },
  {
    name: "message queues and semaphores, which outlive their maker",
    run: python(`message = ctypes.create_string_buffer(b"\\1" + bytes(8007))
for i in range(32000):
    one = libc.msgget(0, 0o1600)
    if one < 0: break
    while libc.msgsnd(one, message, 8000, 0o4000) == 0: pass
for i in range(32000):
    if libc.semget(0, 32000, 0o1600) < 0: break`),
    denied: async (room) => {
      assert.ok((await holds(room)) < 64 * MiB, "the memory is left to programs");
      const next = await room.exec(`perl -e '$x="a"x(64<<20); print "enough"'; ipcrm --all`);
      assert.equal(next.all, "enough");
    },
    twin: "q=$(ipcmk -Q | grep -o '[0-9]*$') && s=$(ipcmk -S 4 | grep -o '[0-9]*$') && ipcrm -q $q -s $s",
  },
  {
    name: "queues of the kernel",
    run: python(
      `rt = ctypes.CDLL("librt.so.1", use_errno=True)\nfor i in range(64):\n    if rt.mq_open(f"/q{i}".encode(), 0o102, 0o600, None) < 0: break\nelse: print("ALL")`,
    ),
    denied: never(/ALL/),
    twin: "ipcs -q",
  },
];

const PROCESSES: readonly Attack[] = [
  {
    name: "many sleepers",
    call: { timeoutMs: 3000 },
    run: "for i in $(seq 2000); do sleep 200 & done 2>/dev/null; echo started",
    denied: async (room, ran) => {
      assert.ok((ran.result?.peak.pids ?? 999) <= 128, "the limit holds");
      assert.ok(["pids", "timeout"].includes(ran.result?.cause ?? ""), "a shell waits for room");
      await emptied?.(room, ran);
    },
    twin: "for i in $(seq 50); do sleep 0.1 & done; wait",
  },
  {
    name: "a fork bomb of four generations",
    call: { timeoutMs: 1500 },
    run: `python3 -c '
import os, time
for generation in range(12):
    try: os.fork()
    except OSError: pass
time.sleep(60)' 2>/dev/null`,
    denied: async (room, ran) => {
      assert.equal(ran.result?.timed_out, true);
      assert.ok((ran.result?.peak.pids ?? 999) <= 128, "the limit holds");
      await emptied?.(room, ran);
    },
    twin: "python3 -c 'import os; os.fork()'",
  },
  {
    name: "a thread bomb",
    run: `python3 -c '
import threading, time
made = 0
try:
    for i in range(1000): threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); made += 1
except RuntimeError: pass
print("ALL" if made == 1000 else "some")'`,
    denied: (_, { all }) => assert.match(all, /^some/),
    twin: `python3 -c 'import threading; [threading.Thread(target=print).start() for i in range(20)]'`,
  },
  {
    name: "forgotten time-out",
    call: { timeoutMs: 2000 },
    run: "sleep 1000; echo never",
    denied: async (room, ran) => {
      assert.deepEqual([ran.result?.timed_out, ran.code, ran.all], [true, 124, ""]);
      await ended("timeout")?.(room, ran);
      await emptied?.(room, ran);
    },
    twin: "sleep 0.1",
  },
  {
    name: "a timeout, ignoring TERM with all its children",
    call: { timeoutMs: 500 },
    run: "trap '' TERM HUP INT; for i in 1 2 3; do setsid bash -c 'trap \"\" TERM; while :; do sleep 0.1; done' & done; while :; do sleep 0.1; done",
    denied: async (room, ran) => {
      assert.deepEqual([ran.result?.timed_out, ran.code], [true, 124]);
      await ended("timeout")?.(room, ran);
      await emptied?.(room, ran);
    },
    twin: "trap 'exit 0' TERM; kill -TERM $$",
  },
];

const FILES: readonly Attack[] = [
  {
    name: "a file of 5 GiB, sparse and real",
    run: "truncate -s 5G huge; ls -s huge; rm -f huge; fallocate -l 5G huge; rm -f huge; dd if=/dev/zero of=huge bs=1 count=1 seek=5G",
    denied: async (room, ran) => {
      assert.ok(
        (await stat(room.at("huge")).then(
          ({ size }) => size,
          () => 0,
        )) <=
          4 * 2 ** 30,
      );
      await ended("disk")?.(room, ran);
    },
    twin: "truncate -s 3G large && rm large",
  },
  {
    name: "all available open files",
    run: `python3 -c '
import os
n = 0
try:
    while n < 20000: os.dup(0); n += 1
except OSError: pass
print(n)'; ulimit -n 9999 2>/dev/null && echo RAISED; true`,
    denied: (_, { all }) => assert.ok(Number(all) < 4096, all),
    twin: "python3 -c 'import os; [os.dup(0) for _ in range(1000)]'",
  },
];

attacks([...MEMORY, ...PROCESSES, ...FILES]);
