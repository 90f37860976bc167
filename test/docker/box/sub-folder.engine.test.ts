import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, chown, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import path from "node:path";
import test, { describe } from "node:test";
import type { OwnedBox } from "../../../src/core/ports.ts";
import type { BoxRequest } from "../../../src/docker/box/prepare-box.ts";
import { startBox } from "../../../src/docker/box/start-box.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { ROOT, skip } from "../../fixtures/engine.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import { noOverlay } from "./open-box.ts";
import { git, noGit, repository } from "../../boxes/workspace/repository.ts";

/** A workspace that is a folder of a repository: its git works, and nothing above it can be written. */

const cannot = skip || noGit;
const uid = process.getuid?.() ?? 0;
const OWNER = uid === 0 ? 64_320 : uid;

/** `r` is a repository; `r/packages/one` is worked in. */
async function project(files: Readonly<Record<string, string>> = {}): Promise<Scratch> {
  const place = await scratch({}, "/var/tmp");
  repository(place.at("r"));
  await place.write("r/README.md", "top\n");
  await place.write("r/packages/one/a.txt", "a\n");
  await place.write("r/packages/two/b.txt", "b\n");
  git(place.at("r"), "add", "-A");
  git(place.at("r"), "commit", "-q", "-m", "first");
  for (const [name, text] of Object.entries(files)) await place.write(name, text, 0o755);
  await chmod(place.path, 0o755);
  own(place);
  return place;
}

function own(place: Scratch): void {
  if (uid === 0) execFileSync("chown", ["-hR", `${OWNER}:${OWNER}`, place.at("r")]);
}

interface Opened extends AsyncDisposable {
  readonly box: OwnedBox;
  readonly warnings: readonly string[];
  /** Its exit code, and all that it said. */
  readonly sh: (line: string) => Promise<readonly [number, string]>;
}

async function opened(place: Scratch, wanted: Partial<BoxRequest> = {}): Promise<Opened> {
  const warnings: string[] = [];
  const maker = {
    engine,
    root: ROOT,
    uid,
    home: place.at("home"),
    stateDir: place.at("state"),
    onWarning: (text: string) => void warnings.push(text),
  };
  const request: BoxRequest = {
    workspace: place.at("r/packages/one"),
    mode: "workspace-write",
    image: null,
    limits: { memory: 2 ** 28, cpus: null, pids: 64 },
    runtime: null,
    isolation: "bind",
    keep: null,
    watchChanges: true,
    ...wanted,
  };
  const box = await startBox(maker, request, AbortSignal.timeout(60_000));
  return {
    box,
    warnings,
    sh: async (line) => {
      const words = ["bash", "-c", `exec 2>&1; ${line}`];
      const asked = { words, timeoutMs: 60_000, keep: { head: 16_384, tail: 0 } };
      const { exit_code, stdout } = await box.exec(asked, AbortSignal.timeout(60_000));
      return [exit_code, Buffer.from(stdout.head).toString()];
    },
    [Symbol.asyncDispose]: () => box[Symbol.asyncDispose](),
  };
}

const COMMIT = "git -c user.name=me -c user.email=me@here commit -q";

describe("in every mode and isolation", () => {
  for (const wanted of [
    {},
    { mode: "read-only" },
    { mode: "danger-full-access" },
    { isolation: "overlay" },
  ] as const)
    test(
      `git works, and nothing above the workspace is written: ${JSON.stringify(wanted)}`,
      {
        skip: cannot || ("isolation" in wanted && noOverlay),
      },
      async () => {
        await using place = await project({ "r/packages/one/a.txt": "other\n" });
        await using open = await opened(place, wanted);
        const { sh } = open;
        assert.deepEqual(
          await sh("git status --porcelain; git log -1 --format=%s; git rev-parse --show-prefix"),
          [0, " M packages/one/a.txt\nfirst\npackages/one/\n"],
        );
        assert.deepEqual(await sh("cat ../../README.md ../two/b.txt; pwd"), [
          0,
          `top\nb\n${place.at("r/packages/one")}\n`,
        ]);
        const tries = [
          "echo x >../../README.md",
          "echo x >>../two/b.txt",
          "touch ../new ../../new ../../.git/new",
          "rm -f ../two/b.txt",
          "mv ../../README.md ../../moved",
          "mv ../one ../three",
          "mkdir ../../.git/hooks/x",
          "ln -s /x ../../link",
          "chmod 777 ../..",
          "rmdir ../one || rm -rf ../../packages/two",
          "mv a.txt ../a.txt",
          "ln a.txt ../linked",
        ];
        for (const each of tries) {
          const [code, said] = await sh(each);
          assert.notEqual(code, 0, each);
          assert.match(said, /Read-only|busy|cross-device|not permitted/, each);
        }
        const [code] = await sh("echo new >new.txt && mkdir -p d/e && mv new.txt d/e/");
        assert.equal(code === 0, !("mode" in wanted) || wanted.mode !== "read-only");
        await open[Symbol.asyncDispose]();
        assert.equal(await readFile(place.at("r/README.md"), "utf8"), "top\n");
        assert.deepEqual((await readdir(place.at("r"))).toSorted(), [".git", "README.md", "packages"]);
        assert.deepEqual((await readdir(place.at("r/packages"))).toSorted(), ["one", "two"]);
        const kept = !("isolation" in wanted) && code === 0;
        assert.equal(existsSync(place.at("r/packages/one/d/e/new.txt")), kept);
      },
    );
});

test("a refused write above the workspace is reported as blocked", { skip: cannot }, async () => {
  await using place = await project();
  await using open = await opened(place);
  const request = { words: ["touch", "../../x"], timeoutMs: 60_000, keep: { head: 4096, tail: 0 } };
  const { cause, blocked } = await open.box.exec(request, AbortSignal.timeout(60_000));
  assert.deepEqual([cause, blocked], ["filesystem", [place.at("r/x")]]);
});

test("commits are made at the repository's top and reported for the folder", { skip: cannot }, async () => {
  await using place = await project({ "r/.git/hooks/pre-commit": "#!/bin/sh\ntouch ran\n" });
  await using open = await opened(place);
  const { sh, box } = open;
  assert.deepEqual(await sh(`echo 1 >new.txt; echo 2 >>a.txt; git add new.txt && ${COMMIT} -am mine`), [
    0,
    "",
  ]);
  assert.deepEqual(await sh(`echo 3 >staged; git add . && git status --porcelain`), [
    0,
    "A  packages/one/staged\n",
  ]);
  const log = await box.log?.();
  assert.ok(log);
  assert.deepEqual(
    log.commits.map(({ subject, files, entries }) => [subject, files, entries.map((one) => one.path)]),
    [["mine", 2, ["a.txt", "new.txt"]]],
  );
  assert.deepEqual(
    log.staged.map((one) => one.path),
    ["staged"],
  );
  assert.equal(git(place.at("r"), "log", "-1", "--format=%an %s").trim(), "me mine");
  assert.equal(existsSync(place.at("r/packages/one/ran")), false);
});

test(
  "files that others staged or changed elsewhere are not changes of the box",
  { skip: cannot },
  async () => {
    await using place = await project();
    await place.write("r/packages/two/theirs", "t\n");
    git(place.at("r"), "add", "packages/two/theirs");
    own(place);
    await using open = await opened(place);
    assert.deepEqual(await open.sh(`echo 1 >new.txt; git add new.txt && ${COMMIT} -m all`), [0, ""]);
    const [commit] = (await open.box.log?.())?.commits ?? [];
    assert.deepEqual([commit?.files, commit?.entries.map((one) => one.path)], [2, ["new.txt"]]);
    const { all } = await open.box.changes();
    assert.deepEqual(
      [...all].map((one) => one.path),
      ["new.txt"],
    );
  },
);

test(
  "a git pointer written by the box does not reach a repository outside the workspace",
  { skip: cannot },
  async () => {
    await using place = await project();
    repository(place.at("r/packages/two/nested"));
    own(place);
    const heads = (): string => git(place.at("r/packages/two/nested"), "rev-list", "--all");
    const before = heads();
    await using open = await opened(place);
    const line = `mkdir x; echo "gitdir: ../../two/nested/.git" >x/.git; cd x && echo 1 >f && git add f && ${COMMIT} -m evil; cd ..; echo "gitdir: ../two/nested/.git" >.git; ${COMMIT} --allow-empty -m evil`;
    assert.notEqual((await open.sh(line))[0], 0);
    assert.equal(heads(), before);
  },
);

describe("other forms of a repository", () => {
  test("a linked worktree", { skip: cannot }, async () => {
    await using place = await project();
    git(place.at("r"), "worktree", "add", "-q", place.at("r/../wt"), "-b", "side");
    if (uid === 0) execFileSync("chown", ["-hR", `${OWNER}:${OWNER}`, place.at("r"), place.at("wt")]);
    await using open = await opened(place, { workspace: place.at("wt/packages/one") });
    assert.deepEqual(
      await open.sh(`echo 1 >new && git add new && ${COMMIT} -m side && git log -1 --format=%s`),
      [0, "side\n"],
    );
    assert.notEqual((await open.sh(`touch ../../x`))[0], 0);
    assert.notEqual((await open.sh(`touch ${place.at("r/.git/x")}`))[0], 0);
    assert.notEqual((await open.sh(`ls ${place.at("r/packages")}`))[0], 0);
    assert.equal(git(place.at("r"), "log", "-1", "--format=%s", "side").trim(), "side");
  });

  test("a submodule", { skip: cannot }, async () => {
    await using place = await project();
    repository(place.at("lib"));
    await place.write("lib/src/l.txt", "l\n");
    git(place.at("lib"), "add", "-A");
    git(place.at("lib"), "commit", "-q", "-m", "lib");
    git(
      place.at("r"),
      "-c",
      "protocol.file.allow=always",
      "submodule",
      "--quiet",
      "add",
      place.at("lib"),
      "lib",
    );
    own(place);
    await using open = await opened(place, { workspace: place.at("r/lib/src") });
    assert.deepEqual(
      await open.sh(`echo 1 >new && git add new && ${COMMIT} -m sub && git log -1 --format=%s`),
      [0, "sub\n"],
    );
    assert.notEqual((await open.sh("touch ../x"))[0], 0);
    assert.notEqual((await open.sh(`touch ${place.at("r/.git/modules/lib/x")}`))[0], 0);
    assert.notEqual((await open.sh(`cat ${place.at("r/README.md")}`))[0], 0);
  });

  test("a folder with its own repository is its own top", { skip: cannot }, async () => {
    await using place = await project();
    repository(place.at("r/packages/one/own"));
    own(place);
    await using open = await opened(place, { workspace: place.at("r/packages/one/own") });
    assert.notEqual((await open.sh("cat ../../../README.md"))[0], 0);
    assert.equal((await open.sh("git status"))[0], 0);
  });
});

test("a copy reports that git does not work in it", { skip: cannot }, async () => {
  await using place = await project();
  await using open = await opened(place, { isolation: "copy" });
  const why = `the repository ${place.at("r")} lies above the workspace and is not copied`;
  assert.deepEqual(open.warnings, [`git does not work in the box: ${why}`]);
  assert.notEqual((await open.sh("git status"))[0], 0);
  assert.deepEqual(await open.sh("cat a.txt"), [0, "a\n"]);
});

test(
  "a top folder that belongs to somebody else or is a home is not mounted, with a warning",
  { skip: cannot },
  async () => {
    await using place = await project();
    const refused = async (why: string): Promise<void> => {
      await using open = await opened(place);
      assert.deepEqual(open.warnings, [
        `git does not work in the box: the repository ${place.at("r")} is not mounted: ${why}`,
      ]);
      assert.match((await open.sh("cat ../../README.md"))[1], /No such file/);
      assert.equal((await open.sh("touch mine"))[0], 0);
    };
    if (uid === 0) {
      await chown(place.at("r"), OWNER + 1, OWNER);
      await refused("it belongs to somebody else");
      await chown(place.at("r"), OWNER, OWNER);
    }
    await symlink("r", place.at("home"));
    await refused("it is a home directory");
  },
);

test("a socket above the workspace is covered, and one inside the box is not", { skip: cannot }, async () => {
  await using place = await project();
  const server = await listening(place.at("r/s"));
  await chmod(place.at("r/s"), 0o777);
  own(place);
  try {
    await using open = await opened(place);
    assert.match((await open.sh(ask("../../s")))[1], /^(?:EACCES|ECONNREFUSED)\n$/);
    const own = `node -e 'require("net").createServer().listen("/tmp/s", () => setTimeout(process.exit, 3000))' & sleep 1; ${ask("/tmp/s")}`;
    assert.deepEqual(await open.sh(own), [0, "REACHED\n"]);
  } finally {
    server.close();
  }
});

async function listening(file: string): Promise<Server> {
  const server = createServer((caller) => caller.end("SECRET")).listen(path.relative(process.cwd(), file));
  await new Promise((resolve) => server.once("listening", resolve));
  return server;
}

test(
  "two folders of one repository can be used at the same time, the top and one of them cannot",
  { skip: cannot },
  async () => {
    await using place = await project();
    await using one = await opened(place);
    await using two = await opened(place, { workspace: place.at("r/packages/two") });
    assert.deepEqual(await one.sh(line("x")), [0, ""]);
    assert.deepEqual(await two.sh(line("y")), [0, ""]);
    assert.equal(git(place.at("r"), "log", "-2", "--format=%s"), "y\nx\n");
    await assert.rejects(opened(place, { workspace: place.at("r") }), /is in use by another run/);
  },
);

test("files in the folder that git at the top executes are protected there", { skip: cannot }, async () => {
  await using place = await project({ "r/packages/one/hooks/pre-commit": "#!/bin/sh\n" });
  git(place.at("r"), "config", "core.hooksPath", "packages/one/hooks");
  own(place);
  await using open = await opened(place);
  assert.match((await open.sh("echo x >hooks/pre-commit"))[1], /Read-only/);
  assert.equal((await open.sh("echo x >hook"))[0], 0);
  await writeFile(place.at("r/packages/one/hook"), "");
});

const ask = (file: string): string =>
  `node -e 'require("net").connect(${JSON.stringify(file)}).on("connect", () => {console.log("REACHED"); process.exit()}).on("error", (e) => {console.log(e.code); process.exit(1)})'`;

const line = (name: string): string =>
  `echo 1 >${name} && git add ${name} && ${COMMIT} -m ${name} -- ${name}`;
