import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, lstat, readFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import type { ContainerCreateOptions } from "dockerode";
import { ownerLabels } from "../../../src/boxes/box-record.ts";
import { type CommitPlan, commitPlan } from "../../../src/boxes/workspace/commit-plan.ts";
import { containerSpec } from "../../../src/docker/container-spec.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { image, skip } from "../../fixtures/engine.ts";
import { planOf } from "../../fixtures/plan.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";
import { git, noGit, repository } from "./repository.ts";

const UID = 64_322;

/** The plan in a locked container as its owner would run it; `argv` replaces git to try the walls. */
async function inside(plan: CommitPlan, argv: readonly string[] = plan.argv): Promise<number> {
  const labels = ownerLabels(UID);
  const user = { uid: UID, gid: UID };
  const spec = containerSpec(planOf({ image, argv, user, mode: "read-only", labels }));
  const mounts: NonNullable<ContainerCreateOptions["HostConfig"]>["Mounts"] = [];
  for (const mount of plan.mounts) {
    if (mount.optional && !(await lstat(mount.path).catch(() => undefined))) continue;
    const BindOptions = { Propagation: "rprivate", NonRecursive: true } as const;
    mounts.push({
      Type: "bind",
      Source: mount.path,
      Target: mount.path,
      ReadOnly: !mount.writable,
      BindOptions,
    });
  }
  const Env = [...(spec.Env ?? []), ...Object.entries(plan.env).map(([key, value]) => `${key}=${value}`)];
  const HostConfig = { ...spec.HostConfig, Mounts: mounts };
  const container = await engine.api.createContainer({ ...spec, Env, HostConfig, WorkingDir: plan.cwd });
  try {
    await container.start();
    return ((await container.wait()) as { StatusCode: number }).StatusCode;
  } finally {
    await container.remove({ force: true, v: true });
  }
}

async function planFor(home: Scratch, args: readonly string[], worktree = "w"): Promise<CommitPlan> {
  const top = home.at(worktree);
  const ask = (what: string): string => path.resolve(top, git(top, "rev-parse", what).trim());
  const [gitDir, commonDir] = [ask("--git-dir"), ask("--git-common-dir")];
  const config = [await readFile(path.join(commonDir, "config"), "utf8")];
  await chmod(home.path, 0o755);
  execFileSync("chown", ["-R", `${UID}:${UID}`, home.path]);
  const identity = { name: "somebody", email: "s@s" };
  return commitPlan({ workspace: top, worktree: top, gitDir, commonDir, config, identity }, args);
}

const cannot = process.getuid?.() === 0 ? skip || noGit : "only root gives files to another owner";

test(
  "git add and git commit work with hooks off, and leave everything that git executes unchanged",
  { skip: cannot },
  async () => {
    await using home = await scratch();
    repository(home.at("w"));
    await home.write("w/new.txt", "text\n");
    for (const hook of ["pre-commit", "post-commit", "commit-msg"])
      await home.write(`w/.git/hooks/${hook}`, "#!/bin/sh\ntouch .git/ran\nexit 1\n", 0o755);
    await home.write("w/.gitattributes", "* filter=x\n");
    const before = await home.read("w/.git/config");
    assert.equal(await inside(await planFor(home, ["add", "-A"])), 0);
    const plan = await planFor(home, ["commit", "-q", "-m", "from inside"]);
    assert.equal(await inside(plan), 0);
    const log = git(home.at("w"), "log", "-1", "--format=%an %s");
    assert.equal(log, "somebody from inside\n");
    assert.equal(await home.read("w/.git/config"), before);
    await assert.rejects(lstat(home.at("w/.git/ran")));

    const tries =
      "echo x >.git/config; echo x >.git/hooks/pre-push; mv .git/hooks .git/h; mv .git g; rm -rf .git/info; echo x >y";
    await inside(plan, ["bash", "-c", `${tries}; touch .git/means`]);
    assert.equal(await home.read("w/.git/config"), before);
    await assert.rejects(lstat(home.at("w/.git/hooks/pre-push")));
    await assert.rejects(lstat(home.at("w/y")));
    await lstat(home.at("w/.git/info/exclude"));
    await lstat(home.at("w/.git/means"));
  },
);

test("a linked worktree commits into its main repository", { skip: cannot }, async () => {
  await using home = await scratch();
  repository(home.at("main"));
  git(home.at("main"), "worktree", "add", "-q", home.at("w"));
  await home.write("w/new.txt", "text\n");
  assert.equal(await inside(await planFor(home, ["add", "new.txt"])), 0);
  assert.equal(await inside(await planFor(home, ["commit", "-q", "-m", "from a worktree"])), 0);
  assert.match(git(home.at("main"), "log", "-1", "--format=%s", "w"), /from a worktree/);
});

test(
  "a nested repository's fsmonitor does not run, and an lfs file cannot be added unfiltered",
  { skip: cannot },
  async () => {
    await using home = await scratch();
    repository(home.at("w"));
    repository(home.at("w/nested"));
    git(home.at("w/nested"), "config", "core.fsmonitor", `touch ${home.at("w/.git/ran")}; false`);
    assert.equal(await inside(await planFor(home, ["add", "-A"])), 0);
    assert.equal(await inside(await planFor(home, ["commit", "-q", "-m", "link"])), 0);
    await home.write("w/nested/file", "changed");
    assert.equal(await inside(await planFor(home, ["add", "-A"])), 0);
    await assert.rejects(lstat(home.at("w/.git/ran")));
    await home.write("w/.gitattributes", "*.bin filter=lfs\n");
    await home.write("w/a.bin", "large");
    assert.notEqual(await inside(await planFor(home, ["add", "a.bin"])), 0);
  },
);
