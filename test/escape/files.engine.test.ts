import { cp, readdir, stat } from "node:fs/promises";
import assert from "node:assert/strict";
import { OWNER } from "../fixtures/escape.ts";
import { type Attack, attacks, isThere, never, noToken } from "../fixtures/escape-cases.ts";

/** Python calls of the kernel that no program of the image makes. */
const SYSCALLS = `import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(*words): return libc.syscall(*[w.encode() if isinstance(w, str) else w for w in words])`;

const python = (body: string): string => `python3 - <<'PY'\n${SYSCALLS}\n${body}\nPY`;

/** Whole-workspace listing, to see that nothing at all was changed. */
const listing = async (folder: string): Promise<string> =>
  JSON.stringify((await readdir(folder, { recursive: true })).toSorted());

const PLACES: readonly Attack[] = [
  {
    name: "a false ls planted in the image's folders",
    run: String.raw`for d in /usr/local/sbin /usr/local/bin /usr/bin /sbin; do printf '#!/bin/sh\necho hijacked\n' > $d/ls 2>/dev/null && chmod +x $d/ls && echo PLANTED $d; done; hash -r; ls; true`,
    denied: async (room, ran) => {
      never(/PLANTED|hijacked/)(room, ran);
      never(/hijacked/)(room, await room.exec("ls"));
    },
    twin: String.raw`mkdir -p /tmp/bin; printf '#!/bin/sh\necho mine\n' > /tmp/bin/ls; chmod +x /tmp/bin/ls; PATH=/tmp/bin:$PATH; [ "$(ls)" = mine ]`,
    control: true,
  },
  {
    name: "climbing up and reading what is there",
    mode: "read-only",
    run: "p=.; for i in $(seq 30); do p=$p/..; done; cat $p{CAN}/secret {CAN}/secret ../can/secret; ls $p/home $p/root; find / -xdev -name secret -exec cat {} + 2>/dev/null",
    denied: noToken,
    twin: "p=.; for i in $(seq 30); do p=$p/..; done; grep -q readme $p{W}/README.md",
    control: true,
  },
  {
    name: "climbing up and deleting what is there",
    run: "rm -rf ../* ../.[a-z]* 2>/dev/null; rm -rf /tmp/../{CAN} 2>/dev/null; cd / && rm -f .{CAN}/note; true",
    twin: "touch made && rm made",
    control: true,
  },
  {
    name: "writing next to the workspace, under its own path and its parents'",
    run: "echo x > {CAN}/new; echo x > ../beside; mkdir -p {CAN}/../more/x; cp -r . ../copy; echo x > {CAN}/note; ln -s /etc ../etc",
    twin: "mkdir -p a/b && echo x > a/b/../c && test -s {W}/a/c",
    allowed: async (room) => assert.ok(await isThere(room.at("a/c"))),
    control: true,
  },
  {
    name: "moving or replacing the workspace itself",
    run: "cd /; mv {W} {W}.old; rmdir {W}; mv -T {W}/sub {W}; ln -sfn {CAN} {W}; mkdir -p {W}.old",
    twin: "mkdir d && mv d e && rmdir e",
    control: true,
  },
  {
    name: "changing anything in a read-only workspace",
    mode: "read-only",
    run: "echo x > new; echo x >> README.md; mkdir d; rm -f README.md; chmod 777 sub; mv README.md r; ln -s a b; touch sub/x",
    denied: async ({ W }) => assert.doesNotMatch(await listing(W), /"(new|d|r|b|sub\/x)"/),
    twin: "echo x > /tmp/new && test -s /tmp/new && cat README.md",
    control: true,
  },
];

const WAYS: readonly Attack[] = [
  {
    name: "the root of another process",
    run: "for p in 1 self $$ $PPID; do for d in root cwd; do cat /proc/$p/$d{CAN}/secret /proc/$p/$d/../can/secret /proc/$p/$d/../../../..{CAN}/secret; done; done",
    denied: noToken,
    twin: "grep -q readme /proc/self/cwd/README.md && ls /proc/self/root/ | grep -q tmp",
    control: true,
  },
  {
    name: "a mount over protected paths",
    run: `unshare -Urm bash -c 'mount -t tmpfs none {W}/.harness; umount -l {W}/.vscode {W}/.envrc; mount -o remount,bind,rw {W}/.vscode; mount --bind /tmp {W}/.husky'; umount -l {W}/.vscode; mount -o remount,bind,rw {W}/.vscode; echo x | tee .vscode/tasks.json .envrc .husky/new; true`,
    twin: "cat .vscode/tasks.json .envrc >/dev/null",
    control: true,
  },
  {
    name: "the newer mount calls: open_tree, move_mount, mount_setattr, fsopen",
    run: python(`
tree = call(428, -100, "{W}/.vscode", 1 | 0o2000000)
call(429, tree, "", -100, "/tmp", 4)
import struct
call(442, -100, "{W}/.vscode", 0, struct.pack("QQQQ", 0, 1, 0, 0), 32)
call(430, "tmpfs", 0); call(155, "{W}", "/tmp"); call(165, "{W}/sub", "{W}/.vscode", None, 4096, None)
for path in ["{W}/.vscode/tasks.json", "/tmp/tasks.json", f"/proc/self/fd/{tree}/tasks.json"]:
    try: open(path, "r+").write("changed")
    except OSError: pass`),
    twin: python(`assert call(39) == os.getpid()`),
    control: true,
  },
  {
    name: "another root: chroot, pivot_root, setns",
    run: `chroot / cat {CAN}/secret; unshare -Ur chroot / cat {CAN}/secret; nsenter -t 1 -m cat {CAN}/secret; ${python(
      `for kind in ["mnt", "user", "pid", "cgroup"]:
    try: call(308, os.open("/proc/1/ns/" + kind, 0), 0)
    except OSError: pass
call(155, ".", "."); call(161, "/"); call(161, "/proc/1/root")
try: print(open("{CAN}/secret").read())
except OSError: pass`,
    )}`,
    denied: noToken,
    twin: "readlink /proc/self/ns/mnt",
    control: true,
  },
  {
    name: "a file handle of the file system below (open_by_handle_at)",
    before: async (room) => cp(`${room.CAN}/secret`, `${room.CAN}/copy`),
    run: python(`
import struct
here = os.open("{W}", os.O_RDONLY)
for inode in [2, *range(os.stat("{W}").st_ino - 40, os.stat("{W}").st_ino + 40)]:
    for kind, handle in [(1, struct.pack("II", inode, 0)), (129, struct.pack("QI", inode, 0))]:
        fd = call(304, here, struct.pack("Ii", len(handle), kind) + handle, 0)
        if fd >= 0:
            print("OPENED", inode)
            try: print(os.read(fd, 100))
            except OSError: print(os.listdir(fd))`),
    denied: (room, ran) => {
      noToken(room, ran);
      never(/OPENED/)(room, ran);
    },
    twin: "stat -c %i {W}",
  },
  {
    name: "the engine's own socket",
    run: "for s in /var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock; do curl -s --max-time 2 --unix-socket $s http://x/version; done; find / -xdev -type s 2>/dev/null | sed 's/^/SOCKET /'",
    denied: never(/ApiVersion|SOCKET/),
    twin: "curl --version",
  },
];

const OWNERS: readonly Attack[] = [
  {
    name: "files of another owner, and files that only root may read",
    run: `touch mine; chown 0:0 mine; chgrp root mine; perl -e 'print "gid0\\n" if ($)=0)==0 && $)==0'; cat /etc/shadow; chown -h 0 README.md; sg root id; su -c 'touch roots' root </dev/null; sudo -n touch roots; true`,
    denied: never(/gid0|^root:[^:]*:\d/m),
    twin: "touch mine && chown $(id -u):$(id -g) mine && chmod 640 mine",
    allowed: async (room) => {
      const { mode, uid } = await stat(room.at("mine"));
      assert.deepEqual([mode & 0o777, uid], [0o640, OWNER]);
    },
    control: true,
  },
  {
    name: "set-id bits by chmod, install and cp -p",
    run: "mkdir shared; chmod 2777 shared; cp /bin/cat mycat; chmod 6711 mycat; chmod u+s mycat; install -m 4755 /bin/cat c2; cp -p mycat c3; mkdir -m 2755 d2; true",
    twin: "mkdir shared && chmod 1777 shared && cp /bin/cat mycat && chmod 711 mycat && ./mycat README.md",
    allowed: async (room) => assert.equal((await stat(room.at("shared"))).mode & 0o7777, 0o1777),
    control: true,
  },
  {
    name: "set-id bits by every other door: open, mknod, mkdirat, fchmodat2, an archive",
    run: python(`
import tarfile, io, subprocess
for path, mode in [("a", 0o4755), ("b", 0o2755), ("c", 0o6755)]:
    for work in [lambda: os.open("{W}/o" + path, os.O_CREAT | os.O_WRONLY, mode), lambda: os.mknod("{W}/n" + path, 0o100000 | mode),
                 lambda: os.mkdir("{W}/d" + path, mode), lambda: os.fchmod(os.open("{W}/f" + path, os.O_CREAT | os.O_RDWR), mode)]:
        try: work()
        except OSError: pass
    call(452, -100, "{W}/n" + path, mode, 0); call(268, -100, "{W}/n" + path, mode); call(90, "{W}/n" + path, mode)
with tarfile.open("/tmp/s.tar", "w") as tar:
    entry = tarfile.TarInfo("unpacked"); entry.mode = 0o6755; tar.addfile(entry, io.BytesIO())
subprocess.run(["tar", "-xpf", "/tmp/s.tar", "-C", "{W}"])`),
    twin: "tar -cf /tmp/t.tar README.md && tar -xpf /tmp/t.tar -C /tmp && cmp README.md /tmp/README.md",
    control: true,
  },
  {
    name: "device nodes",
    run: 'mknod null c 1 3; mknod mem c 1 1; touch t; python3 -c \'import ctypes; ctypes.CDLL(None).syscall(316, -100, b"{W}/t", -100, b"{W}/white", 4)\'; python3 -c \'import os; os.mknod("{W}/zero", 0o20666, os.makedev(1, 5))\'; true',
    denied: async ({ W }) => {
      const kinds = await readdir(W, { withFileTypes: true });
      const devices = kinds.filter((entry) => entry.isCharacterDevice() || entry.isBlockDevice());
      assert.deepEqual(devices, []);
    },
    twin: "head -c 1 /dev/zero > byte && echo x > /dev/null && test -s byte",
    control: "mknod null c 1 3",
  },
  {
    name: "file capabilities and attributes that only root sets",
    run: `cp /bin/cat mycat; python3 - <<'PY'
import os, struct
for name, value in [("security.capability", struct.pack("<IIIII", 0x02000001, 0xffffffff, 0, 0, 0)), ("trusted.overlay.opaque", b"y")]:
    try: os.setxattr("{W}/mycat", name, value)
    except OSError: pass
PY`,
    denied: async (room) => {
      const seen = await room.plain(`python3 -c 'import os; print(os.listxattr("{W}/mycat"))'`);
      never(/security\.capability|trusted/)(room, seen);
      assert.equal(seen.code, 0);
    },
    twin: "cp /bin/cat mycat && ./mycat README.md",
    control: true,
  },
];

attacks([...PLACES, ...WAYS, ...OWNERS]);
