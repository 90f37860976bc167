import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import test from "node:test";
import { engine } from "../fixtures/engine-api.ts";
import { skip } from "../fixtures/engine.ts";
import { type Attack, attacks, type Check, never } from "../fixtures/escape-cases.ts";
import { Room } from "../fixtures/escape.ts";

const read = (file: string): string => {
  try {
    return readFileSync(file, "latin1").trim();
  } catch {
    return "";
  }
};

/** None of the host's own words stand in what was said; short ones would be there by chance. */
const tellsNone =
  (...words: readonly string[]): Check =>
  (_, { all }) => {
    const told = words.filter((word) => word.length > 3 && all.includes(word));
    assert.deepEqual(told, []);
  };

const USERS = read("/etc/passwd")
  .split("\n")
  .map((line) => line.split(":"))
  .filter(([, , id]) => Number(id) >= 1000 && Number(id) < 65_534)
  .flatMap(([name, , , , , home]) => [`${name}:`, home ?? ""]);

const RESOLVERS = [...read("/etc/resolv.conf").matchAll(/^(?:nameserver|search|domain)\s+(\S+)/gm)].map(
  ([, name = ""]) => name,
);

const names = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

/** Canary keys in the environment of this very process, from which boxes are started. */
const KEY = `canary-${randomBytes(8).toString("hex")}`;
for (const name of ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY"]) process.env[name] = KEY;

const PROCESSES: readonly Attack[] = [
  {
    name: "the environment of the harness, of the box's first process and of the command's parents",
    run: "printenv; printenv OPENAI_API_KEY; for p in 1 $PPID $$ self; do cat /proc/$p/environ | tr '\\0' '\\n'; done; cat /proc/1/task/*/environ; strings /proc/1/mem; set",
    denied: (room, ran) => {
      tellsNone(KEY)(room, ran);
      const unknown = ran.all.match(
        /^(?!(?:PATH|HOME|LANG|TERM|CI|GIT_\w+|PWD|OLDPWD|SHLVL|HOSTNAME|_|BASH\w*)=)[A-Z_]+_(?:KEY|TOKEN|SECRET|PROXY|HOST)=.*$/gm,
      );
      assert.deepEqual(unknown, null);
    },
    twin: "test -n \"$PATH\" && test $CI = 1 && cat /proc/self/environ | tr '\\0' '\\n' | grep -q ^HOME=",
  },
  {
    name: "memory, descriptors and program of the box's first process",
    run: `for f in mem maps environ auxv stack syscall exe cwd root fd/0 fd/1 io; do head -c 64 /proc/1/$f 2>/dev/null | tr -d '\\0' | grep -q . && echo READ $f; done; for f in 0 1 2 3 4 5; do echo forged 2>/dev/null > /proc/1/fd/$f && echo WROTE $f; done; echo 0 2>/dev/null > /proc/1/oom_score_adj && echo WROTE oom; ls /proc/1/fd/ | sed 's/^/FD /'; python3 - <<'PY'
import ctypes
libc = ctypes.CDLL(None)
for call in [(101, 16, 1, 0, 0), (310, 1, 0, 0, 0, 0, 0), (311, 1, 0, 0, 0, 0, 0), (434, 1, 0)]:
    if libc.syscall(*call) > 0 or (call[0] == 101 and libc.syscall(*call) == 0): print("CALL", call[0])
PY`,
    denied: async (room, ran) => {
      never(/^(READ|WROTE|FD \d|CALL (?!434))/m)(room, ran);
      const next = await room.exec("echo next");
      assert.equal(next.all, "next\n");
    },
    twin: "test -r /proc/self/maps && ls /proc/self/fd && head -c 9 /proc/1/cmdline >/dev/null",
    control: "head -c 64 /proc/1/maps | grep -q . && echo READ maps; ls /proc/1/fd | sed 's/^/FD /'",
  },
  {
    name: "descriptors and input of the harness in a command",
    run: `ls -l /proc/self/fd | grep -vE ' [012] ->|fd$|total|/proc/' | sed 's/^/EXTRA /'; timeout 2 cat; python3 -c '
import os
for fd in range(3, 200):
    try: print("OPEN", fd, os.readlink(f"/proc/self/fd/{fd}"))
    except OSError: pass
try: open("/dev/tty"); print("TTY")
except OSError: pass'`,
    denied: never(/EXTRA|OPEN|TTY/),
    twin: "exec 3<README.md; cat <&3 | grep -q readme",
  },
  {
    name: "processes of the host",
    run: "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; cat /proc/[0-9]*/comm; kill -0 -1; ls -d /proc/[0-9]*",
    denied: (room, ran) => {
      tellsNone("--test-reporter", "dockerd", "containerd")(room, ran);
      never(new RegExp(`^/proc/${process.pid}$`, "m"))(room, ran);
    },
    twin: "sleep 1 & ps -o comm= | grep -q sleep && kill $!",
  },
];

const SYSTEM: readonly Attack[] = [
  {
    name: "the host's name and its people",
    run: "hostname; uname -n; cat /etc/hostname /etc/hosts /proc/sys/kernel/hostname /proc/sys/kernel/domainname /etc/passwd /etc/group; getent passwd; ls /home /root /var/mail; id; who; last",
    denied: (room, ran) => {
      tellsNone(...USERS.filter((name) => name !== "nobody:"), hostname().length > 3 ? hostname() : "\0none")(
        room,
        ran,
      );
      never(new RegExp(`^${hostname().replaceAll(".", "\\.")}$`, "m"))(room, ran);
    },
    twin: "test $(hostname) = sandbox",
  },
  {
    name: "the host's resolvers and search names",
    run: "cat /etc/resolv.conf /etc/hosts; getent hosts host.docker.internal",
    denied: tellsNone(...RESOLVERS),
    twin: "test -r /etc/resolv.conf && test -r /etc/hosts",
  },
  {
    name: "paths of the host beyond the workspace, in the mounts and in the cgroups",
    run: "cat /proc/net/* /proc/self/net/* >/dev/null; cat /proc/self/mountinfo /proc/self/mounts /proc/1/mountinfo; cat /proc/self/cgroup | sed 's/^/CGROUP /'; df -a",
    denied: (room, ran) => {
      tellsNone(room.CAN, `${room.root}/state`, `${room.root}/home`, process.cwd())(room, ran);
      never(/^CGROUP .*[0-9a-f]{64}/m)(room, ran);
    },
    twin: "grep -q ' {W} ' /proc/self/mountinfo",
    control: true,
  },
  {
    name: "the kernel's command line, disks, interrupts, symbols and modules",
    run: "cat /proc/cmdline /proc/partitions /proc/diskstats /proc/interrupts /proc/kallsyms /proc/keys /proc/key-users /proc/timer_list /proc/sched_debug /proc/kcore 2>/dev/null | head -c 20000; ls /sys/block /sys/module /sys/firmware /sys/kernel /proc/acpi /proc/scsi",
    denied: (room, ran) => {
      tellsNone(
        read("/proc/cmdline") || "\0none",
        ...names("/sys/module").filter((name) => name.includes("_")),
      )(room, ran);
      never(/^\s*\d+\s+\d+\s+\d+ [vs]d[a-z]|\d+:.*CPU\d|ffffffff[0-9a-f]{8} |0{16} [A-Za-z] /m)(room, ran);
    },
    twin: "cat /proc/meminfo /proc/cpuinfo /proc/uptime",
    control: true,
  },
  {
    name: "the machine's serial numbers and addresses",
    run: "cat /sys/class/dmi/id/* /sys/devices/virtual/dmi/id/* /sys/class/net/*/address /sys/class/powercap/*/name; ls /sys/class/net /sys/class/block; cat /proc/net/arp /proc/net/unix /proc/net/tcp | tail -n +2",
    denied: (room, ran) => {
      const dmi = names("/sys/class/dmi/id").map((name) => read(`/sys/class/dmi/id/${name}`));
      const net = names("/sys/class/net").filter((name) => name !== "lo");
      // Tunnels have an address of zeros, as lo has everywhere.
      const addresses = net
        .map((name) => read(`/sys/class/net/${name}/address`))
        .filter((text) => /[1-9a-f]/.test(text));
      tellsNone(...dmi, ...net, ...addresses)(room, ran);
    },
    twin: "ls /sys/class/net | grep -qx lo",
  },
  {
    name: "the kernel's log",
    run: `dmesg; cat /dev/kmsg /proc/kmsg; python3 -c '
import ctypes
text = ctypes.create_string_buffer(9000)
n = ctypes.CDLL(None).klogctl(3, text, 9000)
print("LOG", n, text.value) if n > 0 else None'`,
    denied: never(/LOG|\[\s*\d+\.\d{6}\]/),
    twin: "command -v dmesg",
  },
  {
    name: "the kernel's keyrings",
    run: `python3 -c '
import ctypes
libc = ctypes.CDLL(None)
for ring in [-1, -2, -3, -4, -5]:
    print("KEY", ring) if libc.syscall(248, b"user", b"harness-escape", b"x", 1, ring) >= 0 else None
    print("RING", ring) if libc.syscall(250, 0, ring, 0) >= 0 else None
print("ASKED") if libc.syscall(249, b"user", b"harness-escape", None, -4) >= 0 else None'; cat /proc/keys /proc/key-users`,
    denied: (room, ran) => {
      never(/^(KEY|RING|ASKED|[0-9a-f]{8} )/m)(room, ran);
      assert.ok(!read("/proc/keys").includes("harness-escape"));
    },
    twin: "python3 -c 'import ctypes; assert ctypes.CDLL(None).syscall(39) > 0'",
  },
];

attacks([...PROCESSES, ...SYSTEM]);

test("keys of the user in the environment of the program", { skip }, async () => {
  await using room = await Room.make();
  const command =
    "printenv OPENAI_API_KEY; printenv HARNESS_API_KEY; tr '\\0' '\\n' < /proc/1/environ; tr '\\0' '\\n' < /proc/$PPID/environ; env; true";
  const keys = { OPENAI_API_KEY: KEY, HARNESS_API_KEY: KEY };
  const { code, stdout, stderr } = await room.harness(
    ["sandbox", "exec", "--", "bash", "-lc", command],
    keys,
  );
  assert.equal(code, 0);
  assert.ok(!(stdout + stderr).includes(KEY));
  assert.match(stdout, /^HOME=\/home\/box$/m);
  assert.deepEqual(await room.boxes(), []);
  const without = await room.plain(command, keys);
  assert.ok(without.all.includes(KEY), "the control does not show it either");
});

test("what the engine stores about a box contains no key and no text of the command", { skip }, async () => {
  await using room = await Room.make();
  const job = (await room.box()).start({
    words: ["sleep", "30"],
    env: { TOLD: room.secret },
    timeoutMs: 30_000,
    keep: { head: 100, tail: 0 },
  });
  const [id = ""] = await room.boxes();
  const kept = JSON.stringify(await engine.api.getContainer(id).inspect());
  assert.ok(!kept.includes(KEY) && !kept.includes(room.secret));
  assert.match(kept, /"LogConfig":\{"Type":"none"/);
  job.kill();
  await job.result;
});
