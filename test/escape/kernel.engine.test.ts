import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { type Attack, attacks, never } from "../fixtures/escape-cases.ts";
import { OWNER } from "../fixtures/escape.ts";
import { answers, python } from "./kernel-calls.ts";
import { ADMIN, unlocked } from "./unlocked.ts";

/** Every line ends with one of the errors: nothing went through. */
const allRefused: Attack["denied"] = (_, { all }) => {
  const lines = all.trim().split("\n");
  assert.ok(lines.length > 0 && lines.every((line) => / (EPERM|ENOSYS|EACCES)$/.test(line)), all);
};

const says =
  (text: string): NonNullable<Attack["denied"]> =>
  (_, { all }) =>
    assert.equal(all.trim(), text);

const socket = (family: number, type: number, protocol: number): string =>
  `call(41, 198, ${family}, ${type}, ${protocol})`;
const sockets = (...list: readonly (readonly [number, number, number])[]): string =>
  answers(Object.fromEntries(list.map((one) => [one.join(","), socket(...one)])));

const SOCKETS: readonly Attack[] = [
  {
    name: "raw packets",
    run: `perl -e 'for([2,3,1],[2,3,255],[17,3,0],[10,3,58]){$r=syscall(41,@$_);print "OPEN @$_\\n" if $r>=0}'`,
    denied: never(/OPEN/),
    twin: `perl -e 'for([2,1,0],[10,2,0],[1,1,0]){exit 1 if syscall(41,@$_)<0}'`,
    control: true,
  },
  {
    name: "kernel crypto, packets and virtual machines as sockets",
    run: sockets(
      [38, 5, 0],
      [17, 2, 0],
      [40, 1, 0],
      [40, 2, 0],
      [29, 3, 1],
      [30, 1, 0],
      [44, 3, 0],
      [43, 1, 0],
    ),
    denied: allRefused,
    twin: sockets([1, 2, 0]),
    control: true,
  },
  {
    name: "netlink except for routes: audit, events, filters, diagnosis, keys",
    run: sockets(...[2, 4, 6, 9, 11, 12, 15, 16, 20, 21].map((protocol) => [16, 3, protocol] as const)),
    denied: allRefused,
    twin: sockets([16, 3, 0]),
    allowed: says("16,3,0 ok"),
    control: true,
  },
  {
    name: "uncommon transports: SCTP, DCCP, UDP-Lite, multipath, ping",
    run: sockets([2, 1, 132], [2, 6, 33], [2, 2, 136], [2, 1, 262], [2, 2, 1], [10, 2, 58]),
    denied: allRefused,
    twin: sockets([2, 1, 6], [2, 2, 17]),
    control: true,
  },
];

const NAMESPACES: readonly Attack[] = [
  {
    name: "a user namespace, and root in it",
    run: "unshare -Ur id -u; unshare -Urm mount -t tmpfs none /mnt; unshare -n true; nsenter -t 1 -m id; id -u",
    denied: (_, { all }) => assert.match(all, new RegExp(`^${OWNER}\\n(.*(denied|not permitted).*\\n){4}$`)),
    twin: `test $(id -u) = ${OWNER} && readlink /proc/self/ns/user`,
  },
  {
    name: "namespaces by number, with and without clone",
    run: answers({
      unshare: "call(272, 97, 0x10000000)",
      "unshare mounts": "call(272, 97, 0x20000)",
      clone: "call(56, 220, 0x10000000 | 17, 0, 0, 0, 0)",
      "clone pids": "call(56, 220, 0x20000000 | 17, 0, 0, 0, 0)",
      clone3: "call(435, 435, 0, 0)",
      setns: "call(308, 268, os.open('/proc/self/ns/net', 0), 0)",
    }),
    denied: allRefused,
    twin: python(
      "pid = os.fork()\nif pid == 0: os._exit(7)\nassert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7",
    ),
  },
  {
    name: "mounts, old interface and new: the mount table stays unchanged",
    run: `md5sum < /proc/self/mountinfo > /tmp/before
mount -t tmpfs none /mnt; mount --bind /tmp {W}/.git; mount -o remount,rw /; umount /proc/sys; umount -l {W}/.git; umount {W}
${answers({
  mount: "call(165, 40, b'none', b'/tmp', b'tmpfs', 0, 0)",
  remount: "call(165, 40, b'', b'/', b'', 0x20, 0)",
  umount2: "call(166, 39, b'/proc/sys', 2)",
  pivot_root: "call(155, 41, b'/', b'/')",
  open_tree: "call(428, 428, -100, b'/tmp', 1)",
  fsopen: "call(430, 430, b'tmpfs', 0)",
  mount_setattr: "call(442, 442, -100, b'/', 0, 0, 0)",
})} > /tmp/answers; grep -v -E 'EPERM|ENOSYS' /tmp/answers && echo THROUGH
md5sum < /proc/self/mountinfo | cmp - /tmp/before || echo MOVED; touch /etc/x /proc/sys/x {W}/.git/x && echo WRITTEN`,
    denied: never(/THROUGH|MOVED|WRITTEN/),
    twin: "touch /tmp/x {W}/x && cat /proc/self/mountinfo > /dev/null",
  },
  {
    name: "another root: chroot",
    run: answers({ chroot: "call(161, 51, b'/tmp')" }),
    denied: allRefused,
    twin: "cd /tmp && pwd",
    control: true,
  },
];

const KERNEL: readonly Attack[] = [
  {
    name: "keys of the kernel, which all containers of a user share",
    run: answers({
      add_key: "call(248, 217, b'user', b'harness-test', b'x', 1, -3)",
      request_key: "call(249, 218, b'user', b'harness-test', 0, -3)",
      keyctl: "call(250, 219, 0, -3, 1)",
    }),
    denied: allRefused,
    twin: answers({ getpid: "call(39, 172)" }),
  },
  {
    name: "programs and queues in the kernel: bpf, perf, io_uring",
    run: answers({
      bpf: "call(321, 280, 0, 0, 0)",
      perf_event_open: "call(298, 241, 0, 0, 0, 0, 0)",
      io_uring_setup: "call(425, 425, 1, bytes(120))",
    }),
    denied: allRefused,
    twin: answers({ epoll: "call(291, 20, 0)" }),
    control: true,
  },
  {
    name: "memory tricks: userfaultfd, secret memory, gifted pages, other processes' descriptors",
    run: answers({
      userfaultfd: "call(323, 282, 1)",
      memfd_secret: "call(447, 447, 0)",
      vmsplice: "call(278, 75, os.pipe()[1], 0, 0, 0)",
      pidfd_getfd: "call(438, 438, call and os.pidfd_open(1), 0, 0)",
      process_vm_writev: "call(311, 271, os.getpid(), 0, 0, 0, 0, 0)",
      kcmp: "call(312, 272, os.getpid(), 1, 0, 0, 0)",
    }),
    denied: allRefused,
    twin: answers({ memfd: "call(319, 279, b'x', 0)" }),
    control: true,
  },
  {
    name: "calls through the x32 table",
    run: python("print('x32', call(0x40000000 | 39, None), call(0x40000000 | 101, None, 0, 0, 0, 0))"),
    denied: never(/^x32 ok/m),
    twin: answers({ getpid: "call(39, 172)" }),
  },
  {
    name: "32-bit calls, which the filter cannot inspect",
    run: `cd /tmp; echo 'int main(void){long r;__asm__ volatile("int $0x80":"=a"(r):"a"(20));return 0;}' >a.c
[ $(uname -m) = x86_64 ] || exit 0; cc -o a a.c && ./a && echo ANSWERED`,
    denied: never(/ANSWERED/),
    twin: "cd /tmp && echo 'int main(void){return 0;}' >b.c && cc -o b b.c && ./b",
    control: true,
  },
  {
    name: "modules, another kernel, reboot, swap, ports: refused before the arguments are read",
    run: answers({
      init_module: "call(175, 105, 0, 0, b'')",
      finit_module: "call(313, 273, -1, b'', 0)",
      delete_module: "call(176, 106, b'harness_no_such', 0)",
      kexec_load: "call(246, 104, 0, 0, 0, 0)",
      reboot: "call(169, 142, 0, 0, 0)",
      swapon: "call(167, 224, b'/nonexistent', 0)",
      acct: "call(163, 89, b'/nonexistent')",
      iopl: "call(172, None, 3)",
      ioperm: "call(173, None, 0x80, 1, 1)",
      quotactl: "call(179, 60, 0, 0, 0, 0)",
      syslog: "call(103, 116, 10, 0, 0)",
      vhangup: "call(153, 58)",
      open_by_handle_at: "call(304, 265, 0, 0, 0)",
    }),
    denied: allRefused,
    twin: answers({
      uname: "call(63, 160, bytes(400))",
      handle: "call(303, 264, -100, b'/tmp', bytes(200), bytes(8), 0) and 'ok'",
    }),
  },
  {
    name: "the clock: even setting it to the current time is refused",
    run: answers({
      settimeofday: "call(170, 170, 0, 0)",
      clock_settime: "call(227, 112, 0, 0)",
      adjtimex: "call(159, 171, bytes(208))",
      clock_adjtime: "call(305, 266, 0, bytes(208))",
    }),
    denied: allRefused,
    twin: "date +%s",
  },
  {
    name: "the host's name",
    run: `hostname escaped; ${answers({ sethostname: "call(170 if not arm else 161, 161, b'escaped', 7)", setdomainname: "call(171, 162, b'escaped', 7)" })}; hostname`,
    denied: (_, { all }) => assert.match(all, /^(set\w+ EPERM\n){2}sandbox\nhostname: .*\n$/),
    twin: "test $(hostname) = sandbox",
  },
  {
    name: "settings of the kernel below /proc/sys",
    run: `find /proc/sys -type f -writable 2>/dev/null; for f in kernel/core_pattern kernel/modprobe vm/drop_caches net/ipv4/ip_forward fs/binfmt_misc/register kernel/ns_last_pid
do (echo 1 > /proc/sys/$f) 2>/dev/null && echo WROTE $f; done; true`,
    denied: never(/^\/proc|WROTE/m),
    twin: "cat /proc/sys/kernel/ostype /proc/sys/kernel/pid_max",
  },
  {
    name: "triggers on the pressure of the whole machine",
    run: `for f in /proc/pressure/*; do (echo some 500000 2000000 > $f) 2>/dev/null && echo WROTE $f; done; true`,
    denied: never(/WROTE/),
    twin: "cat /proc/loadavg",
  },
  {
    name: "the magic SysRq key, with its harmless help command",
    run: "for f in /proc/sysrq-trigger /proc/sys/kernel/sysrq /proc/irq/default_smp_affinity; do (echo h > $f) 2>/dev/null && echo WROTE $f; done; true",
    denied: never(/WROTE/),
    twin: "(echo h > /dev/null) && echo WROTE",
  },
  {
    name: "the box's own limits, through its control groups",
    run: `m=$(cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null)
for f in $(find /sys/fs/cgroup -type f \\( -name 'memory.*limit*' -o -name 'pids.max' -o -name 'cgroup.procs' -o -name release_agent -o -name 'memory.max' -o -name '*.deny' -o -name '*.allow' \\))
do (echo 1 > $f) 2>/dev/null && echo WROTE $f; done; mkdir /sys/fs/cgroup/x /sys/fs/cgroup/memory/x 2>/dev/null && echo MADE
[ "$m" = "$(cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null)" ] || echo CHANGED; echo limit $m`,
    denied: (_, { all }) => assert.equal(all, "limit 268435456\n"),
    twin: "ls -R /sys/fs/cgroup > /dev/null",
  },
  {
    name: "devices: created and existing ones",
    run: `mknod /tmp/sda b 8 0; mknod /tmp/mem c 1 1; mknod {W}/null c 1 3; for d in /dev/mem /dev/kmsg /dev/sda /dev/vda /dev/kvm /dev/fuse /dev/net/tun /dev/loop0
do [ -e $d ] && echo THERE $d; done; find /tmp {W} \\( -type b -o -type c \\) -printf 'MADE %p\\n'`,
    denied: never(/THERE|MADE/),
    twin: "mkfifo /tmp/pipe && echo x > /dev/null && head -c 1 /dev/urandom > /dev/full 2>/dev/null || test -p /tmp/pipe",
    control: true,
  },
  {
    name: "capabilities: none in any set, and none from programs of root",
    run: `grep Cap /proc/self/status | grep -v 0000000000000000; su -c 'echo ROOT' root </dev/null; find / -xdev -perm /6000 -type f -exec sh -c 'grep NoNewPrivs /proc/self/status | grep -v 1$' \\; ; perl -e '$> = 0; $< = 0; print "ROOT\\n" if $> == 0'; true`,
    denied: never(/Cap|ROOT|NoNewPrivs/),
    twin: `grep 'NoNewPrivs:.*1' /proc/self/status && perl -e 'exit 1 if $> != ${OWNER}'`,
    control: true,
  },
  {
    name: "processor time of others: real-time classes, higher priority, larger limits",
    run: `chrt -f 10 echo FIFO; chrt -r 10 echo RR; ionice -c 1 true && echo IO; nice -n -5 nice; (ulimit -Hn 9000) && echo FILES; (ulimit -Hc 9) && echo CORE; python3 -c '
import resource; resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 30, 1 << 30)); print("MEMLOCK")'; true`,
    denied: (_, { all }) => assert.doesNotMatch(all, /FIFO|RR|FILES|CORE|MEMLOCK|^IO|^-5/m),
    twin: "nice -n 5 nice && (ulimit -n 1000; ulimit -n)",
    control: true,
  },
];

attacks([...SOCKETS, ...NAMESPACES, ...KERNEL]);

/** Of the host alone, and told by every ordinary container. */
const FACTS = ["/proc/cmdline", "/proc/partitions", "/proc/diskstats", "/proc/kallsyms", "/proc/interrupts"];

attacks([
  {
    name: "information about the host in /proc and /sys",
    run: `for f in ${FACTS.join(" ")} /proc/keys /proc/key-users /proc/kcore /proc/timer_list; do head -c 40 $f 2>/dev/null; done; ls /sys/block /sys/module /sys/kernel /sys/firmware /sys/class/dmi /proc/acpi /proc/scsi 2>/dev/null | grep -v :$ | tr -d '\\n'; true`,
    denied: (_, { all }) => assert.equal(all.trim(), ""),
    twin: "head -1 /proc/meminfo && head -1 /proc/cpuinfo && ls /sys/fs/cgroup",
    control: true,
  },
]);

test("without the profile and with privileges the same calls succeed", { skip }, async () => {
  const root = `id -u; ${answers({ chroot: "call(161, 51, b'/tmp')" })}; unshare -Urm sh -c 'mount -t tmpfs none /mnt && echo mounted'; hostname escaped && hostname`;
  assert.equal(await unlocked(root, ADMIN), "0\nchroot ok\nmounted\nescaped\n");
  assert.notEqual((await readFile("/proc/sys/kernel/hostname", "utf8")).trim(), "escaped");
});
