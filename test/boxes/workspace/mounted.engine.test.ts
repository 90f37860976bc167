import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, lstat, readdir } from "node:fs/promises";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import test from "node:test";
import { ownerLabels } from "../../../src/boxes/box-record.ts";
import { blockedPaths } from "../../../src/boxes/workspace/blocked-paths.ts";
import { findProtected } from "../../../src/boxes/workspace/protection.ts";
import { containerSpec } from "../../../src/docker/container-spec.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { image, skip } from "../../fixtures/engine.ts";
import { planOf } from "../../fixtures/plan.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { git, noGit, repository } from "./repository.ts";

const UID = 64_323;
const cannot = process.getuid?.() === 0 ? skip || noGit : "only root gives files to another owner";

type Mount = readonly [file: string, readOnly: boolean];

/** What a command writes to stderr in a locked container over the workspace with these mounts. */
async function stderrOf(workspace: string, mounts: readonly Mount[], command: string): Promise<string> {
  const argv = ["bash", "-c", 'cd "$1" && eval "$2"', "bash", workspace, command];
  const user = { uid: UID, gid: UID };
  const spec = containerSpec(
    planOf({ image, argv, user, workspace: { path: workspace }, labels: ownerLabels(UID) }),
  );
  const BindOptions = { Propagation: "rprivate", NonRecursive: true } as const;
  const binds = mounts.map(
    ([file, ReadOnly]) => ({ Type: "bind", Source: file, Target: file, ReadOnly, BindOptions }) as const,
  );
  const HostConfig = { ...spec.HostConfig, Mounts: [...(spec.HostConfig?.Mounts ?? []), ...binds] };
  const container = await engine.api.createContainer({ ...spec, HostConfig });
  try {
    const stream = await container.attach({ stream: true, stdout: true, stderr: true });
    const [out, err] = [new PassThrough().resume(), new PassThrough()];
    engine.api.modem.demuxStream(stream, out, err);
    stream.once("close", () => err.end());
    await container.start();
    await container.wait();
    return await text(err);
  } finally {
    await container.remove({ force: true, v: true });
  }
}

const ATTACK = [
  "echo x >.git/hooks/pre-push",
  "git config core.hooksPath /tmp",
  "mv .git .g",
  "mv a c",
  "touch 'odd\nname, x/.vscode/tasks.json'",
  "echo x >a/free || echo x >c/free",
  "rm -rf {a,c}/b/.git",
].join("\n");

async function prepared() {
  const home = await scratch({ "w/odd\nname, x/.vscode/settings.json": "{}" });
  repository(home.at("w"));
  repository(home.at("w/a/b"));
  await chmod(home.path, 0o755);
  execFileSync("chown", ["-R", `${UID}:${UID}`, home.path]);
  return home;
}

test(
  "with the mounts nothing protected changes, other work does, and the refusals are named",
  { skip: cannot },
  async () => {
    await using home = await prepared();
    const workspace = home.at("w");
    const protection = await findProtected(workspace);
    const mounts: readonly Mount[] = [
      ...protection.pinned.map((file) => [file, false] as const),
      ...protection.readOnly.map((file) => [file, true] as const),
    ];
    const stderr = await stderrOf(workspace, mounts, ATTACK);
    assert.match(git(home.at("w/a/b"), "log", "--oneline"), /first/);
    assert.doesNotMatch(await home.read("w/.git/config"), /hooksPath/i);
    await assert.rejects(lstat(home.at("w/.git/hooks/pre-push")));
    assert.deepEqual(await readdir(home.at("w/odd\nname, x/.vscode")), ["settings.json"]);
    assert.equal(await home.read("w/a/free"), "x\n");
    const blocked = blockedPaths(stderr, workspace, protection);
    for (const name of [
      ".git/hooks/pre-push",
      ".git/config",
      ".git",
      "a",
      "odd\nname, x/.vscode/tasks.json",
      "a/b/.git/config",
    ])
      assert.ok(blocked.includes(home.at("w", name)), `${name} in ${JSON.stringify(blocked)}\n${stderr}`);
  },
);

test("without the mounts the same attack destroys all of it", { skip: cannot }, async () => {
  await using home = await prepared();
  await stderrOf(home.at("w"), [], ATTACK);
  await assert.rejects(lstat(home.at("w/.git")));
  await assert.rejects(lstat(home.at("w/c/b/.git")));
  assert.equal(await home.read("w/.g/hooks/pre-push"), "x\n");
  assert.deepEqual((await readdir(home.at("w/odd\nname, x/.vscode"))).length, 2);
});
