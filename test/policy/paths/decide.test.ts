import assert from "node:assert/strict";
import test from "node:test";
import { MODES, type Verdict } from "../../../src/core/decision.ts";
import { decidePath, decideToolPath, type PathContext } from "../../../src/policy/paths/decide-path.ts";
import { readIgnore } from "../../../src/policy/paths/ignore-rules.ts";

const DEV: PathContext = { mode: "workspace-write", workspace: "/home/dev/project", home: "/home/dev" };

const READS: Readonly<Record<Verdict, Readonly<Record<string, string>>>> = {
  allow: {
    workspace: "a.ts src/a.ts . ./x/../y /home/dev/project ~/project/a.ts /proc/self/cwd/a.ts .git/config",
    "environment examples": ".env.example .env.sample .env.template x/.env.dist .env.local.example",
    "names near secrets":
      "env .environment a.pem.txt key.ts monkey id_rsa.pub .ssh.md credentials.ts secrets.ts",
    temp: "/tmp /tmp/a /var/tmp/a /dev/shm/a /proc/self/root/tmp/a",
    system: "/usr/bin/git /bin/sh /lib/x.so /etc/os-release /etc/ssl/certs/ca.pem /usr/share/x/test.key",
    devices: "/dev/null /dev/zero /dev/urandom /dev/stdin /dev/fd/0 /proc/self/fd/1 //dev/null",
    "kernel figures": "/proc/cpuinfo /proc/meminfo",
  },
  ask: {
    "environment files": ".env .ENV x/.env .env.local .env.production prod.env .envrc .env. /tmp/.env",
    keys: "a.pem x/a.KEY id_rsa id_ed25519_work server.p12 a.pfx a.jks a.keystore a.kdbx .ssh/config",
    credentials: ".netrc .npmrc .pypirc .git-credentials credentials.json .aws/credentials .kube/config",
    "more credentials":
      ".docker/config.json .cargo/credentials.toml terraform.tfstate .gnupg/x .bash_history",
    outside:
      "/etc/passwd /etc/hosts / /etc /home /opt/x /root/x /home/dev/projectx ../x ../../x /TMP/a /usr/src/x",
    home: "~ ~/x ~/.bashrc ~root/x ~root ~dev/project/a.ts",
    "system secrets": "/etc/shadow /etc/gshadow- /etc/ssl/private/x /etc/ssh/ssh_host_rsa_key",
    processes:
      "/proc/self/environ /proc/1/environ /proc/self/task/1/environ /proc/self/mem /proc/1/cmdline /proc",
    "targets known only to the system":
      "/dev/fd/5 /proc/self/fd/3 /proc/12/cwd/a /proc/self/exe /dev/stdin/x",
    devices: "/dev/sda /dev/tcp/1.2.3.4/80 /dev",
    detours: "/proc/self/root/etc/shadow /proc/self/cwd/.env /tmp/../etc/passwd",
  },
  deny: { unreadable: "a\u0000b a\nb a\u001bb a\u007f a\u009b \ud800" },
};

const WRITES: typeof READS = {
  allow: {
    workspace: "a.ts src/a.ts .env .gitignore .gitattributes .github/workflows/ci.yml bin/x /proc/self/cwd/a",
    "names near protected ones": "git x.git .gitx .gi git~2 x/.bashrc .harnessx mise.md x/.harnessignore",
    "dependencies of other people": "node_modules/x/.vscode/a .venv/bin/.envrc",
    temp: "/tmp/a /var/tmp/a /tmp/.bashrc /tmp/x/.git/config",
    devices: "/dev/null /dev/stdout /dev/stderr /dev/tty /dev/zero /dev/fd/2",
  },
  ask: {
    outside: "/opt/x ../x /home/dev/projectx/a /usr/bin/x /etc/hosts /TMP/a /srv /",
    home: "~/x ~/notes/.bashrc ~/Downloads/a ~root/x",
    "targets known only to the system": "/dev/fd/5 /proc/12/cwd/a /proc/self/oom_score_adj",
  },
  deny: {
    git: ".git .git/hooks/pre-commit x/.git/config .git/../.git/x node_modules/x/.git/config x/.gitmodules .husky/x",
    "git in other spellings":
      ".GIT/hooks/x .Git/x git~1/x .g\u200cit/x .git./x .ｇit/x .git::$INDEX_ALLOCATION/x",
    "settings of editors and agents": ".vscode/tasks.json .idea/x .envrc x/.envrc .claude/x .mcp.json",
    "harness's own files": ".harness/config.json .harnessignore .HARNESSIGNORE ~/.config/harness/config.json",
    "top of the workspace": ".bashrc .profile",
    "other repositories": "../other/.git/config /srv/x/.vscode/tasks.json /proc/12/cwd/.git/config",
    "home folders":
      "~/.bashrc ~/.BASHRC ~/.profile ~/.ssh ~/.ssh/authorized_keys ~/.gitconfig ~/.config/git/config",
    "home folders, more":
      "~/.config/autostart/x ~/.config/systemd/user/x ~/.local/bin/x ~root/.bashrc /root/.profile",
    "other homes": "/home/other/.zshrc /Users/x/Library/LaunchAgents/x /proc/self/root/root/.bashrc",
    system:
      "/etc/profile.d/x /etc/cron.d/x /etc/crontab /var/spool/cron/x /etc/passwd /etc/sudoers.d/x /ETC/crontab",
    "system, more":
      "/etc/systemd/system/x /etc/ld.so.preload /run/docker.sock /proc/sys/kernel/core_pattern /sys/x",
    devices: "/dev/sda /dev/mem /dev/sda1 /dev/x /dev /dev/null/x /dev/tcp/x/1",
  },
};

for (const [op, table] of [
  ["read", READS],
  ["write", WRITES],
] as const)
  for (const [verdict, classes] of Object.entries(table))
    for (const [name, paths] of Object.entries(classes))
      test(`${op}: ${name}: ${verdict}`, () => {
        const list = paths.split(" ");
        const decided = list.map((path) => `${decidePath(path, op, DEV).decision} ${path}`);
        assert.deepEqual(
          decided,
          list.map((path) => `${verdict} ${path}`),
        );
      });

test("an empty path and a path that is too long are refused with the reason", () => {
  const long = "a".repeat(4097);
  assert.deepEqual(decidePath("", "read", DEV), {
    decision: "deny",
    contained: false,
    rules: [{ id: "path.empty", reason: "the path is empty", span: [0, 0] }],
    path: "",
  });
  assert.deepEqual(decidePath(long, "read", DEV).rules, [
    { id: "path.too-long", reason: "the path is longer than 4096 characters", span: [0, 4097] },
  ]);
  assert.equal(decidePath("a".repeat(4096), "read", DEV).decision, "allow");
});

test("a decision names the path and every reason against it, the strictest first", () => {
  assert.deepEqual(decidePath("~/.ssh/../.bashrc", "write", DEV), {
    decision: "deny",
    contained: false,
    rules: [
      {
        id: "path.startup",
        reason: "the host runs or obeys it; a shell runs it when it starts or ends",
        span: [0, 17],
      },
      { id: "path.home", reason: "in the home folder, outside the workspace", span: [0, 17] },
    ],
    path: "/home/dev/.bashrc",
  });
});

test("a decision that allows gives its reason", () => {
  assert.deepEqual(decidePath("a", "write", DEV), {
    decision: "allow",
    contained: true,
    rules: [{ id: "path.workspace", reason: "inside the workspace", span: [0, 1] }],
    path: "/home/dev/project/a",
  });
});

for (const [op, path, verdicts] of [
  ["write", "a.ts", "ask allow allow"],
  ["write", "/tmp/a", "ask allow allow"],
  ["write", "/dev/null", "allow allow allow"],
  ["write", "/opt/a", "ask ask allow"],
  ["write", ".git/config", "deny deny deny"],
  ["write", "~/.bashrc", "deny deny deny"],
  ["write", "/dev/sda", "deny deny deny"],
  ["read", "a.ts", "allow allow allow"],
  ["read", ".env", "ask ask allow"],
  ["read", "/etc/passwd", "ask ask allow"],
  ["read", "", "deny deny deny"],
] as const)
  test(`${op} ${path || "nothing"} in the three modes: ${verdicts}`, () => {
    const decided = MODES.map((mode) => decidePath(path, op, { ...DEV, mode }).decision);
    assert.deepEqual(decided, verdicts.split(" "));
  });

test("every read except that of a secret is contained, and so is a write in the workspace or a temporary folder", () => {
  const paths = "a /tmp/a /dev/null /opt/a ~/a /usr/a /proc/a /dev/a /dev/fd/9 ~x".split(" ");
  const contained = (op: "read" | "write"): readonly string[] =>
    paths.filter((path) => decidePath(path, op, DEV).contained);
  assert.deepEqual(contained("read"), "a /tmp/a /dev/null /opt/a ~/a /usr/a /proc/a".split(" "));
  assert.deepEqual(
    [".env", "/etc/shadow"].map((path) => decidePath(path, "read", DEV).contained),
    [false, false],
  );
  assert.deepEqual(contained("write"), "a /tmp/a /dev/null".split(" "));
});

test("what .harnessignore covers can be neither read nor written, in any mode", () => {
  for (const mode of MODES) {
    const context = { ...DEV, mode, ignore: readIgnore("secret/\n*.dump") };
    for (const op of ["read", "write"] as const)
      for (const path of [
        "secret/a",
        "x/SECRET/a",
        "a.dump",
        "/home/dev/project/a.dump",
        "~/project/./a.dump",
      ])
        assert.equal(decidePath(path, op, context).decision, "deny", `${mode} ${op} ${path}`);
    assert.equal(decidePath("open/a", "read", context).decision, "allow");
    assert.notEqual(decidePath("/elsewhere/a.dump", "read", context).decision, "deny");
  }
});

test("a relative path starts at cwd, and the workspace stays the same", () => {
  const context = { ...DEV, cwd: "/home/dev/project/src" };
  const decided = ["../a", "../../a", "../.git/x", ".bashrc"].map(
    (path) => decidePath(path, "write", context).decision,
  );
  assert.deepEqual(decided, ["allow", "ask", "deny", "allow"]);
});

test("a workspace in an unusual place keeps its rules", () => {
  for (const workspace of ["/", "/tmp/w", "/usr/src/app", "/home/dev", "/dev/shm/w"]) {
    const context = { ...DEV, workspace };
    const verdicts = [".git/x", ".bashrc", "a", "/etc/crontab", "/home/dev/.ssh/x", "/dev/sda"].map(
      (path) => decidePath(path, "write", context).decision,
    );
    assert.deepEqual(verdicts, ["deny", "deny", "allow", "deny", "deny", "deny"], workspace);
  }
  assert.equal(decidePath("x", "write", { ...DEV, workspace: "/home/dev/project/.git" }).decision, "deny");
});

test("files beside the workspace or in a home folder never count as temporary for file tools", () => {
  const context = { ...DEV, workspace: "/tmp/own/work", home: "/tmp/me" };
  const kinds = (at: string): readonly string[] => [
    at,
    decidePath(at, "read", context).rules[0]?.id ?? "",
    decideToolPath(at, "write", context).decision,
  ];
  assert.deepEqual(
    ["a", "/tmp/own/work/a", "/tmp/else", "/tmp/ownx/a", "../..", "/var/tmp/own/a"].map(kinds),
    [
      ["a", "path.workspace", "allow"],
      ["/tmp/own/work/a", "path.workspace", "allow"],
      ["/tmp/else", "path.temp", "allow"],
      ["/tmp/ownx/a", "path.temp", "allow"],
      ["../..", "path.temp", "allow"],
      ["/var/tmp/own/a", "path.temp", "allow"],
    ],
  );
  assert.deepEqual(["..", "../a", "/tmp/own/other/a", "~/a", "/tmp/me"].map(kinds), [
    ["..", "path.temp", "deny"],
    ["../a", "path.temp", "deny"],
    ["/tmp/own/other/a", "path.temp", "deny"],
    ["~/a", "path.temp", "deny"],
    ["/tmp/me", "path.temp", "deny"],
  ]);
  const below = { ...DEV, workspace: "/tmp/own" };
  assert.equal(decideToolPath("../a", "write", below).decision, "allow");
  assert.equal(decideToolPath("/tmp/a", "write", { ...DEV, home: "/tmp" }).decision, "allow");
});

test("a workspace that merely lies where home folders do is no home folder", () => {
  const context = { ...DEV, workspace: "/home/project" };
  const verdicts = ["bin/x", ".npmrc", ".bashrc", "/home/other/bin/x", "~/bin/x"].map(
    (path) => decidePath(path, "write", context).decision,
  );
  assert.deepEqual(verdicts, ["allow", "allow", "deny", "deny", "deny"]);
  assert.equal(decidePath("bin/x", "write", { ...DEV, workspace: "/home/dev" }).decision, "deny");
});
