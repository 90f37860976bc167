import type { Attack } from "./attack.ts";

const MOUNTS =
  "an engine that mounts what it is asked to and nothing else (docs/engines.md), or --runtime runsc";
const RIGHTS =
  "an engine that drops all capabilities, sets no-new-privileges and applies seccomp: docker info, line Security Options";
const LAYER =
  "--isolation copy, or an engine on this machine whose data folder can hold an overlay (docs/engines.md)";

/** Attacks on files of the host, on what its programs obey, and on what a layer promises. */
export const FILE_ATTACKS: readonly Attack[] = [
  {
    id: "outside.read",
    promise: "outside",
    text: "a file of yours outside of the workspace is not read",
    attempts: {
      shell: {
        "by its path": "grep -q {TOKEN} {OUT}/secret",
        "by climbing": "grep -q {TOKEN} {W}/../outside/secret",
        "by the root of a process": "grep -q {TOKEN} /proc/1/root{OUT}/secret /proc/self/root{OUT}/secret",
        "by a link": "ln -sf {OUT}/secret {W}/link && grep -q {TOKEN} {W}/link",
      },
    },
    twin: {
      shell: {
        "a file of the workspace": "echo {TOKEN} >own; ln -sf own link2 && grep -q {TOKEN} {W}/link2",
      },
    },
    remedy: MOUNTS,
  },
  {
    id: "outside.write",
    promise: "outside",
    text: "nothing outside of the workspace is written, moved or linked",
    attempts: {
      shell: {
        "a new file": "echo x > {OUT}/new",
        "an old file": "echo x >> {OUT}/note",
        "beside the workspace": "echo x > {W}/../beside",
        "through a link": "ln -sf {OUT}/note {W}/out && echo x >> {W}/out",
        "a hard link": "ln {OUT}/note {W}/hard",
        "the workspace moved": "mv {W} {W}.moved && mv {W}.moved {W}",
      },
    },
    twin: {
      shell: {
        "a file of the workspace": "echo x >plain && ln -sf plain soft && echo y >>soft && ln plain hard2",
        "a folder moved": "mkdir folder && mv folder folder2",
      },
    },
    remedy: MOUNTS,
  },
  {
    id: "outside.image",
    promise: "outside",
    text: "the system of the box stays as it was built",
    attempts: {
      shell: {
        "a program": "echo x > /usr/bin/harness-attack",
        "a setting": "echo x > /etc/harness-attack",
        "the root": "echo x > /harness-attack",
        "the runner":
          "for f in /usr/local/lib/harness/*; do [ -d $f ] || { echo x >> $f && exit 0; }; done; exit 1",
      },
    },
    twin: { shell: { "scratch and home": 'echo x > /tmp/scratch && echo x > "$HOME/scratch"' } },
    remedy: "an engine that makes the root of containers read-only: docker run --read-only",
  },
  {
    id: "outside.sockets",
    promise: "outside",
    text: "no socket of an engine, an agent or a desktop is in the box",
    attempts: {
      shell: {
        docker: "[ -S /var/run/docker.sock ] || [ -S /run/docker.sock ]",
        containerd: "[ -S /run/containerd/containerd.sock ]",
        podman: "[ -S /run/podman/podman.sock ]",
        "the system bus": "[ -S /run/dbus/system_bus_socket ]",
        "a key agent": '[ -n "$SSH_AUTH_SOCK$GPG_AGENT_INFO" ]',
      },
    },
    twin: {
      python: {
        "a socket of its own":
          'child(lambda: (lambda s, c: (s.bind("/tmp/own.sock"), s.listen(), c.connect("/tmp/own.sock")))(socket.socket(1), socket.socket(1)))',
      },
    },
    remedy: MOUNTS,
  },
  {
    id: "outside.set-id",
    promise: "outside",
    text: "no file gets set-id bits or another owner that would count on the host",
    attempts: {
      shell: {
        chmod: "cp /bin/true t1 && chmod 4755 t1 && [ -u t1 ]",
        install: "install -m 2755 /bin/true t2 && [ -g t2 ]",
        "the owner": 'touch mine && chown "$([ "$(id -u)" = 0 ] && echo 1 || echo 0)" mine',
      },
      python: {
        open: 'os.close(os.open("{W}/t3", os.O_CREAT, 0o4755)) or os.stat("{W}/t3").st_mode & 0o4000',
      },
    },
    twin: {
      shell: { "an ordinary program": "cp /bin/true t4 && chmod 755 t4 && ./t4 && chown $(id -u) t4" },
    },
    remedy: RIGHTS,
  },
  {
    id: "outside.devices",
    promise: "outside",
    text: "no device is made, and none of the machine's is there",
    attempts: {
      shell: {
        "a device made": "mknod {W}/made c 1 3",
        "a disk made": "mknod /tmp/disk b 8 0",
        memory: "[ -e /dev/mem ] || [ -e /dev/kmem ] || [ -e /dev/port ]",
        "the kernel's messages": "[ -e /dev/kmsg ]",
        disks: "ls /dev | grep -E '^(sd|hd|vd|xvd|nvme|dm-|loop|mapper)'",
        "machines and tunnels":
          "[ -e /dev/kvm ] || [ -e /dev/fuse ] || [ -e /dev/net/tun ] || [ -e /dev/vhost-net ]",
      },
    },
    twin: {
      shell: {
        "a pipe, and those that all have": "mkfifo /tmp/pipe && echo x > /dev/null && head -c 1 /dev/urandom",
      },
    },
    remedy: RIGHTS,
  },
  {
    id: "obeyed.git",
    promise: "obeyed",
    text: "hooks and settings of git, nested ones too, are not written",
    attempts: {
      shell: {
        "a hook": "printf '#!/bin/sh\\n' > .git/hooks/pre-push",
        settings: "echo '[core]' >> .git/config",
        "settings by git": "git config --file .git/config core.hooksPath /tmp",
        "another place": "mv .git .git2 && mv .git2 .git",
        "the nested one's hook": "printf '#!/bin/sh\\n' > sub/.git/hooks/post-checkout",
        "the nested one's place": "mv sub/.git sub/git && mv sub/git sub/.git",
      },
    },
    twin: {
      shell: {
        "a file beside it": "mkdir hooks && printf '#!/bin/sh\\n' > hooks/pre-push && echo x > sub/config",
        "git reads": "git rev-parse --git-dir",
      },
    },
    remedy: MOUNTS,
  },
  {
    id: "obeyed.settings",
    promise: "obeyed",
    text: "settings of editors, shells, agents and of the harness itself are not written",
    attempts: {
      shell: {
        "an editor's": "echo x > .vscode/tasks.json",
        "an agent's": "echo x > .claude/settings.json",
        "its servers": "echo x > .mcp.json",
        "the shell's": "echo x > .envrc",
        "the harness's": "echo x > .harness/config.json",
        "by another name": "mv .vscode .v && mv .v .vscode",
        "by removal": "cp .envrc /tmp/envrc && rm -f .envrc && cp /tmp/envrc .envrc",
      },
    },
    twin: {
      shell: {
        "files beside them": "mkdir vscode && echo x > vscode/tasks.json && echo x > envrc && rm envrc",
      },
    },
    remedy: MOUNTS,
  },
  {
    id: "obeyed.planted",
    promise: "obeyed",
    text: "such settings that a command makes do not stay in the workspace",
    counts: "host",
    attempts: {
      shell: {
        "an editor's": "mkdir -p .idea && echo x > .idea/workspace.xml",
        "a hook manager's": "mkdir -p .husky && echo x > .husky/pre-commit",
        "a deep one": "mkdir -p a/b/.vscode && echo x > a/b/.vscode/tasks.json",
        "a repository": "mkdir -p c/.git/hooks && echo x > c/.git/hooks/pre-commit && echo x > c/.git/HEAD",
      },
    },
    twin: { shell: { "files of other names": "mkdir -p a/b/vscode && echo x > a/b/vscode/tasks.json" } },
    remedy:
      "report it to the maintainers (SECURITY.md), and until then check `git status --ignored` after each run",
  },
  {
    id: "reversible.layer",
    promise: "reversible",
    text: "over a layer the repository itself stays as it is",
    layer: true,
    counts: "host",
    attempts: {
      shell: {
        "a file written": "echo other > README.md",
        "a file removed": "rm -f sub/README.md",
        "git's own": "echo other > .git/HEAD; printf '#!/bin/sh\\n' > .git/hooks/pre-push",
        "all of it": "rm -rf {W}/sub {W}/.vscode; echo x > {W}/new",
      },
    },
    twin: {
      shell: { "it sees its own change": "echo other > own && grep -q other own && grep -q other README.md" },
    },
    remedy: LAYER,
  },
];
