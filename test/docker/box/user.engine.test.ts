import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { chown, readdir, stat } from "node:fs/promises";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { engine } from "../../fixtures/engine-api.ts";
import { ROOT, skip as noEngine } from "../../fixtures/engine.ts";
import { scratch, type Scratch } from "../../fixtures/scratch.ts";
import { standingBoxes } from "../../fixtures/standing-boxes.ts";
import { leftOver, noOverlay } from "./open-box.ts";

/** nobody: a user of every system. */
const UID = 65_534;
const socket = noEngine === false ? engine.endpoint.host.replace(/^unix:\/\//, "") : "";
const launches = (): boolean =>
  spawnSync("test", ["-x", `${ROOT}/bin/harness`], { uid: UID, gid: UID }).status === 0;
const skip =
  noOverlay ||
  (process.getuid?.() !== 0 && "only root can be somebody else") ||
  (!launches() && `another user may not enter ${ROOT}`) ||
  (!socket.startsWith("/") && "no socket");

/** The source of the command as it runs for an ordinary user who may use the engine. Killed when its layer has this file. */
async function asUser(place: Scratch, line: string, killAt?: string): Promise<string> {
  const { gid } = await stat(socket);
  const words = ["sandbox", "exec", "--json", "--isolation", "overlay", "--", "bash", "-ec", line];
  const env = { PATH: process.env["PATH"], HOME: place.path, XDG_STATE_HOME: place.at("state") };
  const child = spawn(`${ROOT}/bin/harness`, words, {
    uid: UID,
    gid,
    cwd: place.at("w"),
    env,
    stdio: "pipe",
  });
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  child.stdin.end();
  const ended = new Promise((resolve) => child.once("close", resolve));
  if (killAt !== undefined) {
    // What goes while it is looked at is no failure.
    const made = async (): Promise<boolean> =>
      (await readdir(place.at("state"), { recursive: true }).catch(() => [])).some((name) =>
        name.endsWith(killAt),
      );
    while (child.exitCode === null && !(await made())) await sleep(50);
    child.kill("SIGKILL");
  }
  await ended;
  return `${out}${err}`;
}

async function prepared(): Promise<Scratch> {
  const place = await scratch({ "w/a/file": "1\n", "w/b": "2\n", "state/x": "" });
  for (const one of ["", "w", "w/a", "w/a/file", "w/b", "state"]) await chown(place.at(one), UID, UID);
  return place;
}

/** A deletion leaves in the layer's work folder what only root can remove; a mode of 0 locks its owner out. */
const LINE = "rm b; mkdir -p x/y; echo >x/y/z; chmod 0 x; echo 2 >a/file";

test(
  "an ordinary user's overlay leaves nothing behind, whatever was deleted or locked in it",
  { skip },
  async () => {
    await using place = await prepared();
    const said = await asUser(place, LINE);
    assert.match(said, /"modified":\["a\/file"\],"deleted":\["b"\]/);
    assert.match(said, /no change reached the repository/);
    assert.doesNotMatch(said, /left over/);
    assert.deepEqual(await readdir(place.at("state/harness/boxes")), []);
    assert.deepEqual(await leftOver(place.at("w")), []);
  },
);

/** Nobody holds it any more: the box goes by itself, which a busy machine takes its time for. */
async function boxIsGone(workspace: string): Promise<void> {
  const label = `dev.harness.workspace=${workspace}`;
  for (let looks = 0; looks < 500 && (await standingBoxes(label)).length > 0; looks += 1) await sleep(50);
  assert.deepEqual(await standingBoxes(label), []);
}

test("after a kill the next start removes a layer that is not kept", { skip }, async () => {
  await using place = await prepared();
  const layers = (): Promise<string[]> => readdir(place.at("state/harness/boxes"));
  await asUser(place, `${LINE}; touch begun; sleep 20`, "/begun");
  await boxIsGone(place.at("w"));
  assert.equal((await layers()).length, 1);
  const said = await asUser(place, "true");
  assert.doesNotMatch(said, /left over/);
  assert.deepEqual(await layers(), []);
  assert.deepEqual(await leftOver(place.at("w")), []);
});
