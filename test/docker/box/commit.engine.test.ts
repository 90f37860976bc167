import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, lstat, rm } from "node:fs/promises";
import test from "node:test";
import { boxLogReport } from "../../../src/agent/ending/run-changes.ts";
import { type BoxLog, EMPTY_LOG, notesOf } from "../../../src/core/run-record.ts";
import type { Mode } from "../../../src/core/decision.ts";
import type { ExecResult } from "../../../src/core/ports.ts";
import { startBox } from "../../../src/docker/box/start-box.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { image, ROOT, skip } from "../../fixtures/engine.ts";
import { ULIMITS } from "../../fixtures/escape-plain.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import { git, noGit, repository } from "../../boxes/workspace/repository.ts";

const cannot = skip || noGit;
const uid = process.getuid?.() ?? 0;
const OWNER = uid === 0 ? 64_320 : uid;

async function project(files: Readonly<Record<string, string>> = {}): Promise<Scratch> {
  const place = await scratch();
  repository(place.at("w"));
  for (const [name, text] of Object.entries(files)) await place.write(`w/${name}`, text, 0o755);
  await chmod(place.path, 0o755);
  if (uid === 0) execFileSync("chown", ["-R", `${OWNER}:${OWNER}`, place.at("w")]);
  return place;
}

/** One shell line in a box over the project. */
async function inBox(
  place: Scratch,
  line: string,
  mode: Mode = "workspace-write",
  { image = null, seen }: { readonly image?: string | null; readonly seen?: (log: BoxLog) => void } = {},
): Promise<ExecResult> {
  const { signal } = new AbortController();
  const maker = {
    engine,
    root: ROOT,
    uid,
    home: place.at("home"),
    stateDir: place.at("state"),
    onWarning: () => undefined,
  };
  const limits = { memory: 2 ** 28, cpus: null, pids: 64 };
  const request = {
    workspace: place.at("w"),
    mode,
    image,
    limits,
    runtime: null,
    isolation: "bind" as const,
    keep: null,
    watchChanges: false,
  };
  await using box = await startBox(maker, request, signal);
  const words = ["bash", "-c", line];
  const result = await box.exec({ words, timeoutMs: 60_000, keep: { head: 4096, tail: 4096 } }, signal);
  if (box.log !== undefined) seen?.(await box.log());
  return result;
}

const shown = ({ stdout, stderr, exit_code }: ExecResult): readonly [number, string, string] => [
  exit_code,
  Buffer.from(stdout.head).toString(),
  Buffer.from(stderr.head).toString(),
];

const HOOK = "#!/bin/sh\ntouch ran\n";
const COMMIT = "git -c user.name=me -c user.email=me@here commit -q -m";

test(
  "a script in the box commits in any folder under the given name, and no hook runs",
  { skip: cannot },
  async () => {
    await using place = await project({ ".git/hooks/pre-commit": HOOK, ".git/hooks/post-commit": HOOK });
    const config = await place.read("w/.git/config");
    const line = `mkdir sub && cd sub && echo new > file && git add file && ${COMMIT} 'a b' && git status --short`;
    assert.deepEqual(shown(await inBox(place, line)), [0, "", ""]);
    assert.equal(
      git(place.at("w"), "log", "-1", "--format=%an <%ae> %s", "--name-only"),
      "me <me@here> a b\n\nsub/file\n",
    );
    assert.equal(await place.read("w/.git/config"), config);
    await assert.rejects(lstat(place.at("w/ran")), { code: "ENOENT" });
    assert.equal((await lstat(place.at("w/.git/index"))).uid, OWNER);
  },
);

test(
  "options before the sub-command are accepted as long as they name the repository that git finds",
  { skip: cannot },
  async () => {
    await using place = await project();
    const who = "-c user.name=me -c user.email=me@here";
    const line = [
      "echo a > a; mkdir -p sub; echo b > sub/b; echo c > c; echo d > d",
      "git --no-pager add a",
      "git -P -C sub --no-optional-locks add b",
      "git --git-dir=.git --work-tree=. add c",
      "cd sub; git --work-tree . -C .. --git-dir .git --literal-pathspecs add d; cd ..",
      `git --no-pager ${who} --git-dir "$PWD/.git" commit -q -m one`,
    ].join(" && ");
    assert.deepEqual(shown(await inBox(place, line)), [0, "", ""]);
    assert.equal(git(place.at("w"), "log", "-1", "--format=%s", "--name-only"), "one\n\na\nc\nd\nsub/b\n");
  },
);

test(
  "options that name another repository or other programs go to the image's git and record nothing here",
  { skip: cannot },
  async () => {
    await using place = await project();
    const before = git(place.at("w"), "rev-parse", "HEAD");
    const who = "-c user.name=me -c user.email=me@here";
    for (const words of [
      "--exec-path=/tmp add a",
      "--bare add a",
      `--namespace=n ${who} commit -m x --allow-empty`,
      `-C sub --git-dir=../.git ${who} commit -m x --allow-empty`,
      `--git-dir= ${who} commit -m x --allow-empty`,
      `-c=user.name=me ${who} commit -m x --allow-empty`,
    ]) {
      const { exit_code } = await inBox(place, `mkdir -p sub; echo a > a; git ${words}`);
      assert.notEqual(exit_code, 0, words);
    }
    assert.equal(git(place.at("w"), "rev-parse", "HEAD"), before);
    const own = `git init -q /tmp/r; git --git-dir=/tmp/r/.git --work-tree=/tmp/r ${who} commit -q -m own --allow-empty; git -C /tmp/r log --format=%s`;
    assert.deepEqual(shown(await inBox(place, own)).slice(0, 2), [0, "own\n"]);
    assert.equal(git(place.at("w"), "rev-parse", "HEAD"), before);
  },
);

const REFUSED: Readonly<Record<string, readonly [line: string, says: RegExp]>> = {
  "another setting": ["git -c core.editor=vi commit -m x", /only the settings user\.name/],
  "an option that starts a program": ["git commit -m x --gpg-sign=k", /not among the options/],
  "a template from elsewhere": ["git commit -t /etc/passwd", /not among the options/],
};

for (const [name, [line, says]] of Object.entries(REFUSED))
  test(`a commit with ${name} is refused with the reason`, { skip: cannot }, async () => {
    await using place = await project();
    const [code, , stderr] = shown(await inBox(place, `${line} --allow-empty`));
    assert.equal(code, 128);
    assert.match(stderr, says);
    assert.match(stderr, /next: /);
  });

test(
  "a repository whose own settings could start a program is not committed to",
  { skip: cannot },
  async () => {
    await using place = await project();
    await place.write(
      "w/.git/config",
      `${await place.read("w/.git/config")}[filter "x"]\n\tclean = touch ran\n`,
    );
    const [code, , stderr] = shown(await inBox(place, `${COMMIT} x --allow-empty`));
    assert.equal(code, 128);
    assert.match(stderr, /configuration holds filter\.x\.clean/);
  },
);

test("a read-only box cannot commit", { skip: cannot }, async () => {
  await using place = await project();
  const before = git(place.at("w"), "rev-parse", "HEAD");
  const result = await inBox(place, `${COMMIT} x --allow-empty`, "read-only");
  assert.notEqual(result.exit_code, 0);
  assert.equal(git(place.at("w"), "rev-parse", "HEAD"), before);
});

test("other git commands and the box's own repositories use the image's git", { skip: cannot }, async () => {
  await using place = await project();
  const line = `git log --oneline | wc -l; git init -q n && cd n && ${COMMIT} one --allow-empty && git log --format=%s`;
  assert.deepEqual(shown(await inBox(place, line)).slice(0, 2), [0, "1\none\n"]);
  await assert.rejects(lstat(place.at("w/n/.git")), { code: "ENOENT" });
});

/** Asks for a commit, as often as there are places to ask, and goes on to speak as long as anybody listens. */
const SPEAKS = `import os, socket, struct, threading
def field(name, text): return name + struct.pack("<I", len(text)) + text
request = field(b"d", os.getcwd().encode()) + b"".join(field(b"a", word) for word in (b"commit", b"--allow-empty", b"-qm", b"x"))
def speak():
    s = socket.socket(socket.AF_UNIX)
    s.connect("/run/harness.sock")
    s.sendall(struct.pack("<I", len(request)) + request)
    try:
        for _ in range(1024): s.sendall(bytes(2 ** 20))
    except OSError: pass
many = [threading.Thread(target=speak) for _ in range(8)]
for each in many: each.start()
for each in many: each.join()
print("said")`;

test(
  "a client that keeps sending while it waits does not use up the memory of the box's first process",
  { skip: cannot },
  async () => {
    await using place = await project({ "speak.py": SPEAKS });
    const { peak, ...result } = await inBox(place, "python3 speak.py; git log -1 --format=%s");
    assert.deepEqual(shown(result as ExecResult), [0, "said\nx\n", ""]);
    assert.ok(peak.memory_bytes < 2 ** 27, `${peak.memory_bytes} bytes`);
  },
);

/** A program in the place of the image's git: where it may write a git directory, it plants what the host's git obeys. */
const PLANTS = `#!/bin/sh
if [ -n "$GIT_DIR" ]; then
  mkdir -p "$GIT_DIR/hooks" "$GIT_DIR/rebase-merge"
  printf '#!/bin/sh\\ntouch ran\\n' > "$GIT_DIR/hooks/post-checkout"
  chmod 755 "$GIT_DIR/hooks/post-checkout"
fi
exec /usr/bin/git "$@"
`;

/** One that writes into a rebase that goes on: what it is to run next, and how. */
const REWRITES = `#!/bin/sh
if [ -n "$GIT_DIR" ]; then
  for todo in "$GIT_DIR/rebase-merge/git-rebase-todo" "$GIT_DIR/sequencer/todo"; do echo 'exec touch ran' >> "$todo"; done
  rm -rf "$GIT_DIR/rebase-merge" && mkdir "$GIT_DIR/rebase-merge"
fi 2>/dev/null
exec /usr/bin/git "$@"
`;

async function plantingImage(program = PLANTS): Promise<AsyncDisposable & { readonly name: string }> {
  const Cmd = [
    "sh",
    "-c",
    'printf "$1" > /usr/local/bin/git && chmod 755 /usr/local/bin/git',
    "sh",
    program.replaceAll("%", "%%"),
  ];
  const HostConfig = { Ulimits: ULIMITS };
  const container = await engine.api.createContainer({
    Image: image,
    Entrypoint: [],
    Cmd,
    User: "0:0",
    HostConfig,
  });
  try {
    await container.start();
    assert.equal(((await container.wait()) as { StatusCode: number }).StatusCode, 0);
    const name = `harness-test-planting:${process.pid}`;
    const [repo, tag] = name.split(":");
    await container.commit({ repo, tag, changes: ["ENTRYPOINT []", 'CMD ["sh"]'] });
    return {
      name,
      [Symbol.asyncDispose]: async () => void (await engine.api.getImage(name).remove({ force: true })),
    };
  } finally {
    await container.remove({ force: true });
  }
}

test(
  "files that the image's git plants in a git directory are removed, and nothing more is committed",
  { skip: cannot },
  async () => {
    await using planting = await plantingImage();
    await using place = await project();
    await rm(place.at("w/.git/hooks"), { recursive: true, force: true });
    const logs: BoxLog[] = [];
    const line = `echo a > a; git add a; echo $?; ${COMMIT} x; echo $?; git log --format=%s | wc -l`;
    const result = await inBox(place, line, "workspace-write", {
      image: planting.name,
      seen: (log) => logs.push(log),
    });
    const [, stdout, stderr] = shown(result);
    assert.equal(stdout, "128\n128\n1\n", stderr);
    assert.match(stderr, /the image's git created \S+\/\.git\/hooks, which the host would obey/);
    for (const name of ["hooks", "rebase-merge"])
      await assert.rejects(lstat(place.at(`w/.git/${name}`)), { code: "ENOENT" });
    const [moved] = logs[0]?.quarantined ?? [];
    assert.equal(moved?.from, place.at("w/.git/hooks"));
    assert.match(moved?.takeBack ?? "", /take-back/);
  },
);

for (const [what, program] of [
  ["the image's own git", undefined],
  ["a git that writes into it", REWRITES],
] as const)
  test(
    `a commit in the middle of a rebase is made by ${what}, and the rebase's next commands stay unchanged`,
    { skip: cannot },
    async () => {
      await using planting = program === undefined ? null : await plantingImage(program);
      await using place = await project();
      const on = (line: string): string =>
        execFileSync("sh", ["-ec", line], {
          cwd: place.at("w"),
          env: {
            ...process.env,
            GIT_CONFIG_GLOBAL: "/dev/null",
            GIT_CONFIG_COUNT: "1",
            GIT_CONFIG_KEY_0: "safe.directory",
            GIT_CONFIG_VALUE_0: "*",
          },
          stdio: ["ignore", "pipe", "ignore"],
        }).toString();
      const me = "git -c user.name=me -c user.email=me@here";
      on(`for n in 1 2; do echo $n > f$n; git add f$n; ${me} commit -qm $n; done
        GIT_SEQUENCE_EDITOR='printf "break\\npick HEAD\\nexec touch wanted\\n" >' ${me} rebase -q -i HEAD~1
        chown -R --reference=. .`);
      const todo = await place.read("w/.git/rebase-merge/git-rebase-todo");
      assert.match(todo, /exec touch wanted/);
      const result = await inBox(place, `echo a > a && git add a && ${COMMIT} between`, "workspace-write", {
        image: planting?.name ?? null,
      });
      assert.deepEqual(shown(result), [0, "", ""]);
      assert.equal(await place.read("w/.git/rebase-merge/git-rebase-todo"), todo);
      on(`${me} rebase --continue`);
      assert.equal(on("git log --format=%s -2; ls ran wanted 2>/dev/null || true"), "2\nbetween\nwanted\n");
    },
  );

test(
  "a link staged in one repository is read there, whatever another repository has staged",
  { skip: cannot },
  async () => {
    await using place = await project();
    repository(place.at("w/n"));
    if (uid === 0) execFileSync("chown", ["-R", `${OWNER}:${OWNER}`, place.at("w/n")]);
    const logs: BoxLog[] = [];
    const line = "ln -s a l && git add l && cd n && ln -s b m && git add m";
    const result = await inBox(place, line, "workspace-write", { seen: (log) => logs.push(log) });
    assert.deepEqual(shown(result), [0, "", ""]);
    assert.deepEqual(
      logs[0]?.staged.map(({ path, target }) => [path, target]),
      [
        ["l", "a"],
        ["n/m", "b"],
      ],
    );
  },
);

test("when more is staged than is inspected, this is reported", { skip: cannot }, async () => {
  await using place = await project();
  const logs: BoxLog[] = [];
  const many = 'python3 -c \'for n in range(20000): open("n" * 200 + str(n), "w")\'';
  const seen = (log: BoxLog): unknown => logs.push(log);
  await inBox(place, `${many} && git add . && git status --short | wc -l`, "workspace-write", {
    seen: (log) => void seen(log),
  });
  const [log = EMPTY_LOG] = logs;
  assert.equal(log.staged_cut, true);
  assert.match(notesOf(log).join("\n"), /not all of its paths were looked at/);
  const unseen = { path: ".git", tier: "dangerous", reason: "staged: not all of its paths were looked at" };
  assert.deepEqual(
    boxLogReport(log, place.at("w")).handoff.find(({ path }) => path === ".git"),
    unseen,
  );
});
