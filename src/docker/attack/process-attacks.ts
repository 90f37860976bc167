import type { Attack } from "./attack.ts";

const PROCESSES = "an engine whose containers have process namespaces of their own: no --pid host";
const CONTROLLERS =
  "give the engine the cgroup controllers memory and pids (docker info says which limits are missing; on a boot line: cgroup_enable=memory)";
const REPORT = "report it to the maintainers (SECURITY.md)";

const LEFT = "300";
const left = `[f for f in glob.glob("/proc/[0-9]*/comm") if open(f).read() == "sleep\\n"]`;

const MiB = 2 ** 20;
const FLOOD = 8 * MiB;

/** Attacks on other processes, on the machine's resources, and on the report of how a command ended. */
export const PROCESS_ATTACKS: readonly Attack[] = [
  {
    id: "others.seen",
    promise: "others",
    text: "processes of the host, and of other boxes, are not seen",
    attempts: {
      shell: {
        "the kernel's": "grep -q kthreadd /proc/2/comm",
        "the host's first": "grep -qE 'systemd|init|launchd' /proc/1/comm",
      },
    },
    twin: { shell: { "its own": "grep -q . /proc/self/comm && [ -e /proc/$$/stat ]" } },
    remedy: PROCESSES,
  },
  {
    id: "others.first",
    promise: "others",
    text: "the first process of the box keeps what it has to itself",
    attempts: {
      python: {
        environment: 'reads("/proc/1/environ")',
        memory: 'opens("/proc/1/mem", os.O_RDWR)',
        "its map": 'reads("/proc/1/maps")',
        "what it has open": 'os.listdir("/proc/1/fd")',
        "its root": 'os.readlink("/proc/1/root")',
        "its program": 'os.readlink("/proc/1/exe")',
        "its place with the memory killer":
          'open("/proc/1/oom_score_adj", "r+").write(open("/proc/1/oom_score_adj").read().strip()) > 0',
        "its limits":
          "resource.prlimit(1, resource.RLIMIT_NOFILE, resource.prlimit(1, resource.RLIMIT_NOFILE)) is not None",
      },
    },
    twin: {
      python: {
        "the same of itself":
          'reads("/proc/self/environ") and reads("/proc/self/maps") and os.readlink("/proc/self/exe")',
        "its own limits": "resource.prlimit(0, resource.RLIMIT_NOFILE)",
      },
    },
    remedy: PROCESSES,
  },
  {
    id: "others.signals",
    promise: "others",
    text: "the first process of the box is not stopped or ended",
    attempts: {
      shell: {
        "all signals":
          "for s in 1 2 3 6 9 10 12 13 14 15 19 20; do kill -$s 1 2>/dev/null; done; sleep 0.1; grep -E '^State:.[TZ]' /proc/1/status",
      },
    },
    twin: { shell: { "a process of its own": "sleep 60 & kill -9 $!; wait $!; [ $? = 137 ]" } },
    remedy: PROCESSES,
  },
  {
    id: "others.left",
    promise: "others",
    text: "what a command started is gone when it has ended, daemons too",
    first: `setsid sh -c 'sleep ${LEFT}' >/dev/null 2>&1 </dev/null &
nohup sleep ${LEFT} >/dev/null 2>&1 &
( ( trap '' HUP TERM INT; sleep ${LEFT} ) >/dev/null 2>&1 & )
sleep 0.1`,
    attempts: { python: { "a daemon": left } },
    twin: { shell: { "a job that is waited for": "sleep 0.01 & wait $!" } },
    remedy: REPORT,
  },
  {
    id: "honest.end",
    promise: "honest",
    text: "no command writes to the channel that reports its end",
    attempts: {
      shell: {
        "the runner's": "for f in /proc/1/fd/*; do [ -e $f ] && (: >> $f) && exit 0; done; exit 1",
        "the supervisor's": "for f in /proc/$SUP/fd/*; do [ -e $f ] && (: >> $f) && exit 0; done; exit 1",
        "its memory": "head -c 1 /proc/$SUP/mem; (: >> /proc/$SUP/mem)",
      },
    },
    twin: { shell: { "its own": "(: >> /proc/self/fd/1)" } },
    remedy: REPORT,
  },
  {
    id: "honest.terminal",
    promise: "honest",
    text: "there is no terminal to type into",
    attempts: {
      python: {
        "a terminal": 'opens("/dev/tty", os.O_RDWR)',
        "typed keys": '[fcntl.ioctl(fd, termios.TIOCSTI, b"x") for fd in (0, 1, 2)]',
        "its streams": "any(map(os.isatty, (0, 1, 2)))",
      },
    },
    twin: { shell: { output: "printf told" } },
    remedy: REPORT,
  },
  {
    id: "limits.memory",
    promise: "limits",
    text: "memory beyond the box's limit is not granted",
    ends: ["memory"],
    attempts: { python: { "384 MiB of 256": 'len(b"x" * (384 << 20)) > 0' } },
    twin: { python: { "32 MiB": 'len(b"x" * (32 << 20)) > 0' } },
    remedy: CONTROLLERS,
  },
  {
    id: "limits.processes",
    promise: "limits",
    text: "processes beyond the box's limit are not started",
    ends: ["pids"],
    attempts: { python: { "200 of 128": "forks(200) == 200" } },
    twin: { python: { "20": "forks(20) == 20" } },
    remedy: CONTROLLERS,
  },
  {
    id: "limits.disk",
    promise: "limits",
    text: "no huge file is made, and scratch folders are limited",
    ends: ["disk"],
    attempts: {
      shell: {
        "5 GiB, sparse": "truncate -s 5G {W}/huge && rm {W}/huge",
        "scratch without an end": "head -c 400M /dev/zero > /tmp/full; code=$?; rm -f /tmp/full; exit $code",
        "memory without an end":
          "head -c 400M /dev/zero > /dev/shm/full; code=$?; rm -f /dev/shm/full; exit $code",
      },
    },
    twin: {
      shell: {
        "3 GiB, sparse": "truncate -s 3G {W}/large && rm {W}/large",
        scratch: "head -c 8M /dev/zero > /tmp/some && rm /tmp/some",
      },
    },
    remedy: "an engine that applies limits of files and sizes of tmpfs (docs/engines.md)",
  },
  {
    id: "limits.rank",
    promise: "limits",
    text: "no limit is raised, and no higher priority is taken",
    ownKernel: true,
    attempts: {
      shell: {
        "real time": "chrt -f 10 true",
        priority: "nice -n -5 sh -c '[ $(nice) -lt 0 ]'",
        "open files": "ulimit -Hn 1000000",
        "locked memory": "ulimit -Hl unlimited && ulimit -Sl unlimited",
        dumps: "ulimit -Hc unlimited",
      },
    },
    twin: { shell: { "less of it": "nice -n 5 true && ulimit -n 100" } },
    remedy: "an engine that drops all capabilities and applies ulimits",
  },
  {
    id: "limits.time",
    promise: "limits",
    text: "a command ends when its time is over",
    ends: ["timeout"],
    timeoutMs: 400,
    attempts: { shell: { "deaf to signals": "trap '' TERM HUP INT; sleep 2; sleep 0.1" } },
    twin: { shell: { "in time": "sleep 0.01" } },
    remedy: REPORT,
  },
  {
    id: "limits.output",
    promise: "limits",
    text: "output without an end is cut, and counted",
    attempts: {},
    asks: {
      run: `head -c ${FLOOD} /dev/zero | tr '\\0' x`,
      interpret: ({ kept, total }) =>
        total < FLOOD
          ? []
          : [{ name: "8 MiB", kind: kept < MiB ? "refused" : "through", why: `${kept} bytes were kept` }],
    },
    twin: { shell: { "a line": "printf told" } },
    remedy: REPORT,
  },
];
