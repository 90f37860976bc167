import type { Attack } from "./attack.ts";

const FILTER =
  "an engine that applies seccomp profiles (docker info, line Security Options), or a kernel of the box's own: --runtime runsc (gVisor)";
const FACTS = "an engine that masks paths of /proc and /sys, or --runtime runsc (gVisor)";

const socket = (family: number, type: number, protocol: number): string =>
  `call(41, 198, ${family}, ${type}, ${protocol})`;
const hasContent = (path: string): string => `[ "$(head -c 1 ${path} | wc -c)" = 1 ]`;

/** A 32-bit call on a 64-bit machine: getpid through the old entry of the kernel. */
const OLD_GATE = `(not arm) and child(lambda: (lambda m: (m.write(b"\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3"),
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))())[1])(mmap.mmap(-1, 4096, prot=7)) > 0)`;

/**
 * Each of these is harmless if it goes through: what it makes or changes is named so that the call fails, stays the
 * same as before, or is the box's own.
 */
export const KERNEL_ATTACKS: readonly Attack[] = [
  {
    id: "kernel.mount",
    promise: "kernel",
    text: "nothing is mounted, and no root is changed",
    ownKernel: true,
    attempts: {
      python: {
        mount:
          '(os.makedirs("/tmp/mounted", exist_ok=True), call(165, 40, b"none", b"/tmp/mounted", b"tmpfs", 0, 0))[1]',
        umount: 'call(166, 39, b"/tmp/no-mount", 2)',
        pivot_root: 'call(155, 41, b"/tmp/none", b"/tmp/none")',
        chroot: 'child(lambda: call(161, 51, b"/tmp") == "ok")',
        open_tree: 'call(428, 428, -100, b"/tmp", 1)',
        fsopen: 'call(430, 430, b"tmpfs", 0)',
        mount_setattr: 'call(442, 442, -100, b"/", 0, 0, 0)',
        open_by_handle_at: "call(304, 265, 0, 0, 0)",
      },
    },
    twin: {
      python: {
        "the table of mounts": 'reads("/proc/self/mountinfo")',
        folders: 'os.makedirs("/tmp/own/folder") or True',
      },
    },
    remedy: FILTER,
  },
  {
    id: "kernel.namespaces",
    promise: "kernel",
    text: "no namespace is made or entered",
    ownKernel: true,
    attempts: {
      python: {
        "of users": 'child(lambda: call(272, 97, 0x10000000) == "ok")',
        "of mounts": 'child(lambda: call(272, 97, 0x20000) == "ok")',
        "of networks": 'child(lambda: call(272, 97, 0x40000000) == "ok")',
        clone: 'child(lambda: call(56, 220, 0x10000000 | 17, 0, 0, 0, 0) == "ok")',
        clone3: "call(435, 435, 0, 0)",
        setns: 'call(308, 268, os.open("/proc/self/ns/net", 0), 0)',
      },
    },
    twin: { python: { "a process of its own": "child(lambda: True)" } },
    remedy: FILTER,
  },
  {
    id: "kernel.trace",
    promise: "kernel",
    text: "no process is traced, read or written by another",
    ownKernel: true,
    attempts: {
      python: {
        ptrace: "call(101, 117, 0x4206, 1, 0, 0)",
        process_vm_readv: "call(310, 270, 1, 0, 0, 0, 0, 0)",
        process_vm_writev: "call(311, 271, 1, 0, 0, 0, 0, 0)",
        pidfd_getfd: "call(438, 438, os.pidfd_open(1), 0, 0)",
        kcmp: "call(312, 272, os.getpid(), 1, 0, 0, 0)",
      },
    },
    twin: { python: { "a handle of a process": "os.close(os.pidfd_open(os.getpid())) or True" } },
    remedy: FILTER,
  },
  {
    id: "kernel.programs",
    promise: "kernel",
    text: "no programs, counters or queues inside the kernel",
    ownKernel: true,
    attempts: {
      python: {
        bpf: "call(321, 280, 0, 0, 0)",
        perf_event_open: "call(298, 241, 0, 0, 0, 0, 0)",
        io_uring: "call(425, 425, 1, bytes(120))",
      },
    },
    twin: { python: { epoll: "call(291, 20, 0)" } },
    remedy: FILTER,
  },
  {
    id: "kernel.keys",
    promise: "kernel",
    text: "the kernel's keys, which all of a user's containers share, are not there",
    ownKernel: true,
    attempts: {
      python: {
        add_key: 'call(248, 217, b"user", b"harness-attack", b"x", 1, -1)',
        request_key: 'call(249, 218, b"user", b"harness-attack", 0, 0)',
        keyctl: "call(250, 219, 0, -3, 0)",
      },
    },
    twin: { python: { getpid: "call(39, 172)" } },
    remedy: FILTER,
  },
  {
    id: "kernel.memory",
    promise: "kernel",
    text: "no tricks with memory: faults that a program answers, secret and gifted pages",
    ownKernel: true,
    attempts: {
      python: {
        userfaultfd: "call(323, 282, 1)",
        memfd_secret: "call(447, 447, 0)",
        vmsplice: "call(278, 75, os.pipe()[1], 0, 0, 0)",
      },
    },
    twin: { python: { memfd: 'call(319, 279, b"x", 0)' } },
    remedy: FILTER,
  },
  {
    id: "kernel.machine",
    promise: "kernel",
    text: "no modules, other kernels, swap, ports, clocks or names of the machine",
    ownKernel: true,
    attempts: {
      python: {
        init_module: 'call(175, 105, 0, 0, b"")',
        finit_module: 'call(313, 273, -1, b"", 0)',
        delete_module: 'call(176, 106, b"harness_no_such", 0)',
        kexec_load: "call(246, 104, 0, 999, 0, 0)",
        reboot: "call(169, 142, 0, 0, 0)",
        swapon: 'call(167, 224, b"/nonexistent", 0)',
        acct: 'call(163, 89, b"/nonexistent")',
        ioperm: "call(173, None, 0x80, 1, 0)",
        quotactl: "call(179, 60, 0, 0, 0, 0)",
        syslog: "call(103, 116, 10, 0, 0)",
        settimeofday: "call(164, 170, 0, 0)",
        clock_settime: "call(227, 112, 0, 0)",
        sethostname: "call(170, 161, os.uname().nodename.encode(), len(os.uname().nodename))",
      },
    },
    twin: {
      python: { uname: "call(63, 160, bytes(400))", clock: "time.clock_gettime(time.CLOCK_REALTIME) > 0" },
    },
    remedy: FILTER,
  },
  {
    id: "kernel.sockets",
    promise: "kernel",
    text: "no raw packets, and no socket families that builds do not need",
    ownKernel: true,
    attempts: {
      python: {
        "raw packets": socket(2, 3, 1),
        "raw packets, IPv6": socket(10, 3, 58),
        "the wire": socket(17, 3, 0),
        "kernel crypto": socket(38, 5, 0),
        "virtual machines": socket(40, 1, 0),
        "netlink, audit": socket(16, 3, 9),
        "netlink, events": socket(16, 3, 15),
        SCTP: socket(2, 1, 132),
        ping: socket(2, 2, 1),
      },
    },
    twin: { python: { TCP: socket(2, 1, 0), "TCP, IPv6": socket(10, 1, 0), unix: socket(1, 1, 0) } },
    remedy: FILTER,
  },
  {
    id: "kernel.tables",
    promise: "kernel",
    text: "no system calls through tables that the filter does not check",
    ownKernel: true,
    attempts: {
      python: {
        x32: '(not arm) and child(lambda: call(0x40000000 | 39, None) == "ok")',
        "of 32 bits": OLD_GATE,
      },
    },
    twin: { python: { getpid: "call(39, 172)" } },
    remedy: FILTER,
  },
  {
    id: "kernel.settings",
    promise: "kernel",
    text: "settings of the kernel and of the box's own limits cannot be opened to write",
    attempts: {
      python: {
        core_pattern: 'opens("/proc/sys/kernel/core_pattern")',
        modprobe: 'opens("/proc/sys/kernel/modprobe")',
        drop_caches: 'opens("/proc/sys/vm/drop_caches")',
        "magic keys": 'opens("/proc/sysrq-trigger")',
        "limits of memory":
          'any([opens(f) for f in glob.glob("/sys/fs/cgroup/memory.max") + glob.glob("/sys/fs/cgroup/memory/memory.limit_in_bytes")])',
        "release agents": 'any([opens(f) for f in glob.glob("/sys/fs/cgroup/*/release_agent")])',
        "groups of processes":
          'any([opens(f) for f in glob.glob("/sys/fs/cgroup/cgroup.procs") + glob.glob("/sys/fs/cgroup/*/cgroup.procs")])',
      },
    },
    twin: {
      python: {
        "reading one": 'reads("/proc/sys/kernel/ostype")',
        "a file of its own": 'opens("/tmp/own-setting", os.O_WRONLY | os.O_CREAT)',
      },
    },
    remedy: FACTS,
  },
  {
    id: "kernel.facts",
    promise: "kernel",
    text: "what /proc and /sys reveal about the machine is hidden",
    attempts: {
      shell: {
        memory: hasContent("/proc/kcore"),
        symbols: hasContent("/proc/kallsyms"),
        "how it was started": hasContent("/proc/cmdline"),
        keys: hasContent("/proc/keys"),
        "whose keys": hasContent("/proc/key-users"),
        timers: hasContent("/proc/timer_list"),
        disks: hasContent("/proc/diskstats"),
        firmware: "ls /sys/firmware | grep .",
        modules: "ls /sys/module | grep .",
      },
    },
    twin: {
      shell: {
        "what programs need": `${hasContent("/proc/meminfo")} && ${hasContent("/proc/cpuinfo")} && ls /sys/fs/cgroup | grep -q .`,
      },
    },
    ownKernel: true,
    remedy: FACTS,
  },
  {
    id: "kernel.rights",
    promise: "kernel",
    text: "no capability, no way to get one, no process without a filter",
    ownKernel: true,
    attempts: {
      shell: {
        capabilities: "grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status | grep -v 0000000000000000",
        "new privileges": "grep -E '^NoNewPrivs:.*0$' /proc/self/status",
        "no filter": "grep -E '^Seccomp:.*0$' /proc/self/status",
      },
      python: { "another user": "child(lambda: os.setuid(1 if os.getuid() == 0 else 0) is None)" },
    },
    twin: { shell: { "what it may do": "id -u && umask 077 && touch {W}/rights && chmod 600 {W}/rights" } },
    remedy:
      "an engine that drops all capabilities and sets no-new-privileges: docker info, line Security Options",
  },
];
