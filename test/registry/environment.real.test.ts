import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { COMPILED, type Ended, runProgram } from "../fixtures/cli.ts";
import { engine } from "../fixtures/engine-api.ts";
import { image, ROOT } from "../fixtures/engine.ts";
import { ownImage } from "../fixtures/own-image.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { FILES, LOOK, recipeOn, SEEN } from "../kubernetes/pod-environment.ts";
import { stubPlace } from "../kubernetes/stub-pods.ts";
import { PASSWORD, realRegistry, type RealRegistry, USER } from "./real-registry.ts";

interface User {
  readonly place: Scratch;
  readonly type: (...words: readonly string[]) => Promise<Ended>;
  /** Kills the command in the middle, once this happens. */
  readonly killed: (words: readonly string[], when: Promise<void>) => Promise<void>;
}

/** A folder whose environment is pushed to this registry, and pods that have it from there. */
async function withUser(
  registry: RealRegistry,
  work: (user: User) => Promise<void>,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  await using pods = await stubPlace("none", FILES);
  await using base = await ownImage();
  const { place } = pods;
  const recipe = recipeOn(base.name);
  const own = "home/.config/harness";
  // Large enough for its push to be killed in the middle.
  const system = [...recipe.system, { run: "head -c 60000000 /dev/urandom > /opt/much" }];
  await place.write(`${own}/environments/own.json`, JSON.stringify({ ...recipe, system }));
  const kubernetes = { image, start_timeout: "120s", registry: `${registry.host}/team/env` };
  await place.write(`${own}/config.json`, JSON.stringify({ engine: "kubernetes:", env: "own", kubernetes }));
  const start = {
    home: place.at("home"),
    cwd: place.at("project"),
    env: { KUBECONFIG: place.at("kubeconfig"), ...env },
  };
  const type = (...words: readonly string[]): Promise<Ended> => runProgram("bin/harness", words, start);
  const killed = async (words: readonly string[], when: Promise<void>): Promise<void> => {
    const child = spawn(path.join(ROOT, "bin/harness"), words, {
      cwd: start.cwd,
      env: { PATH: process.env["PATH"], HOME: start.home, ...COMPILED, ...start.env },
      stdio: "ignore",
      detached: true,
    });
    const ended = once(child, "exit");
    await Promise.race([when, ended]);
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    await ended;
    assert.equal(child.signalCode, "SIGKILL");
  };
  try {
    await work({ place, type, killed });
  } finally {
    const { code, stderr } = await type("env", "rm", "--all");
    assert.equal(code, 0, stderr);
  }
}

interface Built {
  readonly id: string;
  readonly pushed: { readonly image: string; readonly how: string; readonly layers: number } | null;
}

async function built({ type }: User): Promise<Built> {
  const { code, stdout, stderr } = await type("env", "build", "--json");
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as Built;
}

const namesOf = async ({ host }: RealRegistry): Promise<readonly string[]> =>
  (await engine.api.listImages()).flatMap(({ RepoTags }) =>
    (RepoTags ?? []).filter((tag) => tag.startsWith(host)),
  );

test("an environment is pushed to the registry and used by a pod, also after harness was killed in the middle of the push", async () => {
  await using registry = await realRegistry();
  await withUser(registry, async (user) => {
    const reached = Promise.withResolvers<void>();
    registry.cutAt = { bytes: 8 * 2 ** 20, how: reached.resolve };
    await user.killed(["env", "build"], reached.promise);
    const first = await built(user);
    assert.equal(first.pushed?.how, "pushed");
    assert.deepEqual(await namesOf(registry), []);
    assert.deepEqual((await built(user)).pushed, { ...first.pushed, how: "kept", layers: 0 });
    const looked = await user.type("sandbox", "exec", "--", "sh", "-c", LOOK);
    assert.deepEqual([looked.code, looked.stdout], [0, SEEN], looked.stderr);
  });
});

const HELPERS = process.env["HARNESS_TEST_HELPERS"] ?? "";
const lacks = ["pass", "gpg", "docker"].filter(
  (program) => spawnSync("sh", ["-c", `command -v ${program}`]).status !== 0,
);

test(
  "docker login keeps a password with docker-credential-pass, and the push reads it from there",
  { skip: lacks.length > 0 && `there is no ${lacks.join(", ")} (apt-get install pass gnupg docker-cli)` },
  async () => {
    await using registry = await realRegistry({ auth: "htpasswd" });
    const env = { PATH: `${HELPERS}:${process.env["PATH"] ?? ""}` };
    await withUser(
      registry,
      async (user) => {
        const { place } = user;
        const home = place.at("home");
        const keys = { ...env, HOME: home };
        await mkdir(place.at("home/.gnupg"));
        await chmod(place.at("home/.gnupg"), 0o700);
        const key = ["--batch", "--passphrase", "", "--quick-generate-key", "me@tests"];
        execFileSync("gpg", key, { env: keys, stdio: "ignore" });
        try {
          execFileSync("pass", ["init", "me@tests"], { env: keys, stdio: "ignore" });
          await place.write("home/.docker/config.json", JSON.stringify({ credsStore: "pass" }));
          const none = await user.type("env", "build");
          assert.equal(none.code, 1, none.stderr);
          assert.match(
            none.stderr.replaceAll(/\s+/g, " "),
            /not authorised.*docker login 127\.0\.0\.1:\d+ \(docker-credential-pass has no login for it\)/,
          );
          const login = ["login", "--username", USER, "--password-stdin", registry.host];
          // The connection to the registry runs through this process, which must not block meanwhile.
          const docker = spawn("docker", login, { env: keys, stdio: ["pipe", "ignore", "ignore"] });
          docker.stdin.end(PASSWORD);
          assert.deepEqual(await once(docker, "exit"), [0, null]);
          assert.doesNotMatch(await place.read("home/.docker/config.json"), /"auth":/);
          assert.equal((await built(user)).pushed?.how, "pushed");
        } finally {
          spawnSync("gpgconf", ["--kill", "gpg-agent"], { env: keys });
        }
      },
      env,
    );
  },
);

test("docker-credential-secretservice without a keyring is named where the registry requires a login", async () => {
  await using registry = await realRegistry({ auth: "htpasswd" });
  const env = { PATH: `${HELPERS}:${process.env["PATH"] ?? ""}` };
  await withUser(
    registry,
    async ({ place, type }) => {
      await place.write("home/.docker/config.json", JSON.stringify({ credsStore: "secretservice" }));
      const { code, stderr } = await type("env", "build");
      assert.equal(code, 1, stderr);
      assert.match(
        stderr.replaceAll(/\s+/g, " "),
        /docker login \S+ \(docker-credential-secretservice [^)]+\)/,
      );
      assert.doesNotMatch(stderr, /has no login/);
    },
    env,
  );
});
