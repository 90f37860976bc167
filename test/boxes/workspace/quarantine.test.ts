import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmod,
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
} from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { findAllPlanted, findPlanted, quarantine } from "../../../src/boxes/workspace/quarantine.ts";
import { findProtected } from "../../../src/boxes/workspace/protection.ts";
import { refusalOf } from "../../fixtures/refusal.ts";
import { ELSEWHERE, noElsewhere } from "../../fixtures/elsewhere.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { git, mkfifo, noGit, repository } from "./repository.ts";

test(
  "without new protected names nothing counts as planted, and nothing is moved",
  { skip: noGit },
  async () => {
    await using home = await scratch({ "w/.envrc": "", "w/src/a.ts": "" });
    repository(home.at("w"));
    const protection = await findProtected(home.at("w"));
    await home.write("w/new.ts", "");
    assert.deepEqual(await findPlanted(home.at("w"), protection), []);
    assert.deepEqual(await findAllPlanted(home.at("w"), protection), {
      planted: [],
      warnings: [],
      unseen: [],
    });
    assert.deepEqual(await quarantine(home.at("w"), [], home.at("state")), []);
    await assert.rejects(stat(home.at("state")));
  },
);

test(
  "a git init in the workspace is found, moved with its contents, and restored by the given command",
  { skip: noGit },
  async () => {
    await using home = await scratch({ "w/a's.ts": "x" });
    const protection = await findProtected(home.at("w"));
    repository(home.at("w"));
    const planted = await findPlanted(home.at("w"), protection);
    assert.deepEqual(planted, [home.at("w/.git")]);
    const [moved] = await quarantine(home.at("w"), planted, home.at("st ate's"));
    assert.ok(moved?.to);
    assert.deepEqual([moved.from, moved.kind], [home.at("w/.git"), "folder"]);
    assert.deepEqual(await readdir(home.at("w")), ["a's.ts"]);
    assert.equal((await stat(path.dirname(moved.to))).mode & 0o777, 0o700);
    const manifest: unknown = JSON.parse(
      await readFile(path.join(path.dirname(moved.to), "manifest.json"), "utf8"),
    );
    assert.deepEqual(manifest, { root: home.at("w"), at: moved.at, items: [moved] });
    execFileSync("sh", ["-c", moved.takeBack]);
    assert.match(git(home.at("w"), "log", "--oneline"), /first/);
  },
);

test(
  "other spellings, links and watched paths are found, and a link is moved instead of its target",
  { skip: noGit },
  async () => {
    await using home = await scratch({ "w/.vscode/x": "", "keys/id": "k" });
    repository(home.at("w"));
    git(home.at("w"), "config", "core.hooksPath", "tools/hooks");
    const protection = await findProtected(home.at("w"));
    await home.write("w/.VSCODE/tasks.json", "");
    await home.write("w/tools/hooks/pre-commit", "");
    await home.write("w/.aider.conf.yml", "");
    await symlink(home.at("keys"), home.at("w/.claude"));
    const planted = await findPlanted(home.at("w"), protection);
    assert.deepEqual(
      planted,
      [".VSCODE", ".aider.conf.yml", ".claude", "tools/hooks"].map((name) => home.at("w", name)),
    );
    const moved = await quarantine(home.at("w"), planted, home.at("state"));
    assert.deepEqual(
      moved.map(({ kind }) => kind),
      ["folder", "file", "link", "folder"],
    );
    assert.equal(await readlink(moved[2]?.to ?? ""), home.at("keys"));
    assert.equal(await home.read("keys/id"), "k");
  },
);

test(
  "the final search finds new nested and bare repositories, but not older ones",
  { skip: noGit },
  async () => {
    await using home = await scratch({ "w/src/a.ts": "" });
    repository(home.at("w/old"));
    const protection = await findProtected(home.at("w"));
    repository(home.at("w/src/new"));
    git(home.path, "init", "-q", "--bare", home.at("w/src/bare"));
    assert.deepEqual(await findPlanted(home.at("w"), protection), []);
    const { planted } = await findAllPlanted(home.at("w"), protection);
    assert.deepEqual(planted, [home.at("w/src/bare"), home.at("w/src/new/.git")]);
  },
);

test("a workspace turned into a bare repository loses its HEAD, and harmless names stay", async () => {
  await using home = await scratch({ "w/a": "", "v/HEAD": "mine", "v/config": "mine" });
  const [protection, twin] = [await findProtected(home.at("w")), await findProtected(home.at("v"))];
  for (const name of ["w/objects", "w/refs", "v/refs"]) await mkdir(home.at(name));
  await home.write("w/HEAD", "ref: refs/heads/main");
  await home.write("w/config", "[core]\n fsmonitor = x");
  for (const find of [
    findPlanted(home.at("w"), protection),
    findAllPlanted(home.at("w"), protection).then(({ planted }) => planted),
  ])
    assert.deepEqual(await find, [home.at("w/HEAD")]);
  assert.deepEqual(await findPlanted(home.at("v"), twin), []);
});

test("an executable file with one name is made inert without a copy, one with several by a copy", async () => {
  await using home = await scratch({ "w/a/.envrc": "x", "w/b/.envrc": "y" });
  const files = ["a", "b"].map((name) => home.at(`w/${name}/.envrc`));
  await link(home.at("w/b/.envrc"), home.at("w/b/other"));
  for (const file of files) await chmod(file, 0o755);
  const before = await Promise.all(files.map((file) => stat(file)));
  const moved = await quarantine(home.at("w"), files, home.at("state"));
  const after = await Promise.all(moved.map(({ to }) => stat(to ?? "")));
  assert.deepEqual(
    after.map(({ ino, mode }, at) => [ino === before[at]?.ino, mode & 0o777]),
    [
      [true, 0o600],
      [false, 0o600],
    ],
  );
  assert.equal((await stat(home.at("w/b/other"))).mode & 0o777, 0o755);
  for (const { takeBack } of moved) execFileSync("sh", ["-c", takeBack]);
  for (const file of files) assert.equal((await stat(file)).mode & 0o777, 0o755);
});

test("a FIFO is removed", async () => {
  await using home = await scratch({ "w/a": "" });
  mkfifo(home.at("w/.envrc"));
  const [moved] = await quarantine(home.at("w"), [home.at("w/.envrc")], home.at("state"));
  assert.deepEqual([moved?.to, moved?.kind], [null, "FIFO"]);
  assert.deepEqual(await readdir(home.at("w")), ["a"]);
});

test("a parent replaced by a link never moves files of the host, and is reported", async () => {
  await using home = await scratch({ "w/sub/.envrc": "planted", "user/.envrc": "the user's" });
  await rename(home.at("w/sub"), home.at("w/gone"));
  await symlink(home.at("user"), home.at("w/sub"));
  const [exit, message] = await refusalOf(() =>
    quarantine(home.at("w"), [home.at("w/sub/.envrc")], home.at("state")),
  );
  assert.equal(exit, 6);
  assert.match(message, /could not be moved/);
  assert.equal(await home.read("user/.envrc"), "the user's");
});

test(
  "a move to another file system copies, keeps links as links, and then removes",
  { skip: noElsewhere },
  async () => {
    await using home = await scratch({ "w/.git/hooks/x": "hook", "w/.git/HEAD": "ref", "keys/id": "k" });
    await symlink(home.at("keys"), home.at("w/.git/link"));
    mkfifo(home.at("w/.git/fifo"));
    await mkdir(home.at("w/.git/empty"));
    const far = await mkdtemp(`${ELSEWHERE}/harness-test-`);
    try {
      const [moved] = await quarantine(home.at("w"), [home.at("w/.git")], far);
      assert.ok(moved?.to);
      assert.deepEqual((await readdir(moved.to)).toSorted(), ["_HEAD.held", "_hooks.held", "empty", "link"]);
      assert.equal(await readFile(path.join(moved.to, "_hooks.held/x"), "utf8"), "hook");
      assert.equal(await readlink(path.join(moved.to, "link")), home.at("keys"));
      assert.deepEqual(await readdir(home.at("w")), []);
      assert.equal(await home.read("keys/id"), "k");
    } finally {
      await rm(far, { recursive: true, force: true });
    }
  },
);

test(
  "a copy that fails halfway leaves nothing behind, and the rest is moved",
  { skip: noElsewhere },
  async () => {
    const far = await mkdtemp(`${ELSEWHERE}/harness-test-`);
    await using home = await scratch({ "w/n/.git/a": "text", "w/z/.envrc": "x" });
    try {
      // Longer than any path can be there.
      await mkdir(path.join(home.at("w/n/.git"), ...Array.from({ length: 5 }, () => "d".repeat(230))), {
        recursive: true,
      });
      const planted = [home.at("w/n/.git"), home.at("w/z/.envrc")];
      const into = path.join(far, ...Array.from({ length: 16 }, () => "q".repeat(200)));
      const [exit, message] = await refusalOf(() => quarantine(home.at("w"), planted, into));
      assert.equal(exit, 6);
      assert.match(message, /1 more were moved/);
      const [one = ""] = await readdir(into);
      assert.deepEqual(await readdir(path.join(into, one)), ["item-1", "manifest.json"]);
    } finally {
      await rm(far, { recursive: true, force: true });
    }
  },
);

test("hooks of coding agents that a box made are found, while their folder stays", async () => {
  await using home = await scratch({ "w/.github/workflows/a.yml": "" });
  const protection = await findProtected(home.at("w"));
  await home.write("w/.github/hooks/a.json", "{}");
  await home.write("w/sub/.config/mise/config.toml", "");
  assert.deepEqual(await findPlanted(home.at("w"), protection), [home.at("w/.github/hooks")]);
  const { planted } = await findAllPlanted(home.at("w"), protection);
  assert.deepEqual(planted.toSorted(), [home.at("w/.github/hooks"), home.at("w/sub/.config/mise")]);
});
