import assert from "node:assert/strict";
import { chmod, chown, lstat, mkdir, symlink } from "node:fs/promises";
import test from "node:test";
import { checkWorkspace, type Workspace } from "../../../src/boxes/workspace/box-workspace.ts";
import { refusalOf } from "../../fixtures/refusal.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";

const ME = process.getuid?.() ?? 0;
const asRoot = { skip: ME === 0 ? false : "only root can give a folder to another user" };

async function room(): Promise<Scratch> {
  // Nothing below /dev is a workspace, and unit tests have their temporary files there.
  const place = await scratch({ "file.txt": "" }, "/tmp");
  for (const folder of ["home/app", "home/.local/state/harness/audit", "engine/volumes"])
    await mkdir(place.at(folder), { recursive: true });
  return place;
}

const check = (place: Scratch, name: string, callerUid = ME): Promise<Workspace> =>
  checkWorkspace({
    path: place.at(name),
    callerUid,
    home: place.at("home"),
    stateDir: place.at("home/.local/state/harness"),
    engineRoot: place.at("engine"),
  });

test("the user's own folder is accepted, with what is needed to recognise it again", async () => {
  await using place = await room();
  const { dev, ino, uid, gid } = await lstat(place.at("home/app"), { bigint: true });
  const found = await check(place, "home/app");
  assert.deepEqual(
    { ...found, warnings: [] },
    {
      path: place.at("home/app"),
      uid: Number(uid),
      gid: Number(gid),
      dev: `${dev}`,
      ino: `${ino}`,
      enclosing: { kind: "none" },
      warnings: [],
    },
  );
});

const REFUSED: Readonly<Record<string, readonly [number, RegExp]>> = {
  none: [2, /does not exist$/],
  "file.txt": [2, /is not a directory$/],
  "file.txt/below": [2, /is not a directory$/],
  home: [6, /it is a home directory$/],
  "home/.local/state/harness": [6, /the harness's own state$/],
  "home/.local/state/harness/audit": [6, /the harness's own state$/],
  "home/.local": [6, /it contains the harness's own state$/],
  engine: [6, /the container engine's data$/],
  "engine/volumes": [6, /the container engine's data$/],
  "": [6, /it contains a home directory$/],
};

for (const [name, [exit, message]] of Object.entries(REFUSED))
  test(`"${name}" is refused with exit ${exit}`, async () => {
    await using place = await room();
    const refusal = await refusalOf(() => check(place, name));
    assert.equal(refusal[0], exit);
    assert.match(refusal[1], message);
  });

test("a link is judged by its target: accepted for a project, refused for a home", async () => {
  await using place = await room();
  await symlink(place.at("home/app"), place.at("good"));
  await symlink(place.at("home"), place.at("bad"));
  await symlink(place.at("loop"), place.at("loop"));
  assert.equal((await check(place, "good")).path, place.at("home/app"));
  assert.match((await refusalOf(() => check(place, "bad")))[1], /it is a home directory$/);
  assert.equal((await refusalOf(() => check(place, "loop")))[0], 2);
});

test("a state directory reached through a link is recognised by its real path", async () => {
  await using place = await room();
  await mkdir(place.at("elsewhere/harness"), { recursive: true });
  await symlink(place.at("elsewhere"), place.at("link"));
  const request = { callerUid: ME, home: place.at("home"), engineRoot: place.at("engine") };
  const state = place.at("link/harness/not-yet");
  const work = (): Promise<Workspace> =>
    checkWorkspace({ ...request, path: place.at("elsewhere/harness"), stateDir: state });
  assert.match((await refusalOf(work))[1], /it contains the harness's own state$/);
});

test("a folder that its owner cannot enter is refused", async () => {
  await using place = await room();
  await chmod(place.at("home/app"), 0o300);
  const [exit, message] = await refusalOf(() => check(place, "home/app"));
  assert.deepEqual([exit, message], [2, `${place.at("home/app")} cannot be read by its owner`]);
  await chmod(place.at("home/app"), 0o500);
  await check(place, "home/app");
});

test("another user's folder is refused for anyone but root", asRoot, async () => {
  await using place = await room();
  await chown(place.at("home/app"), 1234, 1235);
  assert.deepEqual(await refusalOf(() => check(place, "home/app", 1000)), [
    6,
    `${place.at("home/app")} belongs to uid 1234, and you are uid 1000: a box runs as the owner of its workspace`,
  ]);
  const { uid, gid, warnings } = await check(place, "home/app", 0);
  assert.deepEqual({ uid, gid, warnings }, { uid: 1234, gid: 1235, warnings: [] });
});

test("root's folder may be used by root, with a warning", asRoot, async () => {
  await using place = await room();
  assert.deepEqual((await check(place, "home/app", 0)).warnings, [
    "commands run as uid 0 without capabilities",
  ]);
  assert.equal((await refusalOf(() => check(place, "home/app", 1000)))[0], 6);
});

test("a folder may have any characters in its name", async () => {
  await using place = await room();
  for (const name of ["a,b", "a:b", "a b", "a\nb", "a\u0001b", "ä", "-x", "a'b"]) {
    await mkdir(place.at("home", name));
    assert.equal((await check(place, `home/${name}`)).path, place.at("home", name));
  }
});
