import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, readdir, readFile } from "node:fs/promises";
import test from "node:test";
import { listsOf } from "../../fixtures/changes.ts";
import type { Engine } from "../../../src/docker/engine.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { skip } from "../../fixtures/engine.ts";
import { refusalOf } from "../../fixtures/refusal.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { noGit, repository } from "../../boxes/workspace/repository.ts";
import { leftOver, noOverlay, openBox, OWNER } from "./open-box.ts";

for (const name of ["a,b", "a:b", "a\\b", "a\\:b,c d", "new\nline", "quo\"te's", "ä ü", "lowerdir=x", "-o"])
  test(`an overlay works over a folder called ${JSON.stringify(name)}`, { skip: noOverlay }, async () => {
    await using place = await scratch({ [`x/${name}/file`]: "1\n" });
    const workspace = place.at("x", name);
    await using opened = await openBox(place, { workspace });
    assert.equal(await opened.sh("cat file; echo 2 >file; pwd"), `1\n${workspace}\n`);
    assert.deepEqual((await listsOf(opened.box.changes())).modified, ["file"]);
    assert.equal(await readFile(`${workspace}/file`, "utf8"), "1\n");
  });

test(
  "protected paths can be written: git works, and nothing reaches the repository",
  { skip: noOverlay || noGit },
  async () => {
    await using place = await scratch({ "w/.vscode/settings.json": "{}" });
    repository(place.at("w"));
    const before = await readFile(place.at("w/.git/config"), "utf8");
    await using opened = await openBox(place, {});
    await opened.sh(
      "echo x >.vscode/settings.json; git config user.name x; git config user.email x; git commit -qam second --allow-empty; git init -q sub",
    );
    const { added, modified } = await listsOf(opened.box.changes());
    assert.ok(modified.includes(".vscode/settings.json") && modified.includes(".git/config"));
    assert.ok(added.includes("sub/.git/HEAD"));
    assert.equal(await readFile(place.at("w/.git/config"), "utf8"), before);
    assert.deepEqual((await readdir(place.at("w"))).includes("sub"), false);
  },
);

test("a linked worktree sees its main repository read-only", { skip: noOverlay || noGit }, async () => {
  await using place = await scratch();
  repository(place.at("main"));

  spawnSync("git", ["-C", place.at("main"), "worktree", "add", "-q", place.at("w")]);
  if (process.getuid?.() === 0) spawnSync("chown", ["-R", `${OWNER}:${OWNER}`, place.at("main")]);
  await using opened = await openBox(place, {});
  assert.match(await opened.sh("git log --oneline; ! touch ../main/.git/x"), /first/);
});

test(
  "two overlays and a reader can share a folder, and a writer must wait",
  { skip: noOverlay },
  async () => {
    await using place = await scratch({ "w/file": "1\n" });
    await using one = await openBox(place, {});
    await using two = await openBox(place, {});
    await using reader = await openBox(place, { isolation: "bind", mode: "read-only" });
    await one.sh("echo one >file");
    await two.sh("echo two >file");
    assert.equal(await reader.sh("cat file"), "1\n");
    assert.deepEqual([await one.sh("cat file"), await two.sh("cat file")], ["one\n", "two\n"]);
    assert.match((await refusalOf(() => openBox(place, { isolation: "bind" })))[1], /in use by another run/);
  },
);

test("in read-only mode an overlay is read-only too", { skip: noOverlay }, async () => {
  await using place = await scratch({ "w/file": "1\n" });
  await using opened = await openBox(place, { mode: "read-only" });
  assert.equal(await opened.sh("! touch x 2>/dev/null; cat file"), "1\n");
});

test("kept changes outlive the box, and a later box continues with them", { skip: noOverlay }, async () => {
  await using place = await scratch({ "w/file": "1\n", "w/other": "2\n" });
  {
    await using opened = await openBox(place, { keep: "session" });
    await opened.sh("echo 2 >file; rm other");
    const [, message] = await refusalOf(() => openBox(place, { keep: "session" }));
    assert.match(message, /in use by another run/);
  }
  assert.deepEqual(await leftOver(place.at("w")), []);
  assert.equal(await readFile(place.at("state/layers/session/upper/file"), "utf8"), "2\n");
  await using further = await openBox(place, { keep: "session" });
  assert.equal(await further.sh("cat file; ls"), "2\nfile\n");
  assert.equal(await place.read("w/file"), "1\n");
});

test(
  "locked folders, pipes and links do not prevent listing changes or the end",
  { skip: noOverlay },
  async () => {
    await using place = await scratch({ "w/a/file": "1\n" });
    await using opened = await openBox(place, {});
    await opened.sh("mkdir -p x/y; echo >x/y/z; chmod 0 x a; ln -s /etc/passwd l; mkfifo p");
    assert.deepEqual((await listsOf(opened.box.changes())).odd, ["p"]);
  },
);

test("links in the layer are not followed from the host", { skip: noOverlay }, async () => {
  await using place = await scratch({
    "w/d/file": "secret\n",
    "outside/file": "secret\n",
    "outside/more": "",
  });
  await using opened = await openBox(place, {});
  await opened.sh(`rm -r d; ln -s ${place.at("outside")} d; ln -s ${place.at("outside/file")} f`);
  const { added, modified, deleted } = await listsOf(opened.box.changes());
  assert.deepEqual([added, modified, deleted], [["d", "f"], [], ["d/file"]]);
});

test("a state folder that cannot hold an overlay is refused with a workaround", { skip }, async (t) => {
  await using place = await scratch({ "w/file": "", "x,y/file": "" });
  const comma = await refusalOf(() => openBox(place, {}, { stateDir: place.at("x,y") }));
  assert.deepEqual(comma[0], 6);
  assert.match(comma[1], /no overlay can be kept in \S+: its path holds a comma/);
  assert.deepEqual(await readdir(place.at("x,y/boxes")), []);
  assert.deepEqual(await leftOver(place.at("w")), []);
  await using other = await scratch({ "w/file": "" });
  for (const folder of ["lower", "upper", "work", "state"]) await mkdir(other.at(folder));
  const layers = `lowerdir=${other.at("lower")},upperdir=${other.at("upper")},workdir=${other.at("work")}`;
  const mounted = spawnSync("/bin/mount", ["-t", "overlay", "overlay", "-o", layers, other.at("state")]);
  if (mounted.status !== 0) return t.diagnostic("not tried on an overlay: mounting is refused here");
  try {
    const nested = await refusalOf(() => openBox(other, {}));
    assert.match(nested[1], /its file system is an overlay itself/);
    assert.deepEqual(await leftOver(other.at("w")), []);
  } finally {
    spawnSync("/bin/umount", [other.at("state")]);
  }
});

type Options = Readonly<Record<string, string>>;

/** This engine, but for what it makes of a volume's options. */
function withOptions(change: (options: Options) => Options): Engine {
  const api = Object.create(engine.api) as Engine["api"];
  const createVolume = (wanted: { readonly DriverOpts?: Options }): unknown =>
    engine.api.createVolume({ ...wanted, DriverOpts: change(wanted.DriverOpts ?? {}) });
  return { ...engine, api: Object.assign(api, { createVolume }) };
}

test(
  "a mount that the engine cannot make is reported, and nothing is left",
  { skip: noOverlay },
  async () => {
    await using place = await scratch({ "w/file": "" });
    // As an engine on another machine would see it.
    const elsewhere = withOptions(({ o = "", ...others }) => ({
      ...others,
      o: o.replaceAll("/lower,", "/nothing,"),
    }));
    const [exit, message] = await refusalOf(() => openBox(place, {}, { engine: elsewhere }));
    assert.equal(exit, 6);
    assert.match(message, /^the engine cannot lay an overlay over /);
    assert.deepEqual(await leftOver(place.at("w")), []);
    assert.deepEqual(await readdir(place.at("state/boxes")), []);
  },
);

test("an engine that ignores the layers is detected", { skip: noOverlay }, async () => {
  await using place = await scratch({ "w/file": "" });
  const blind = withOptions(() => ({}));
  const [exit, message] = await refusalOf(() => openBox(place, {}, { engine: blind }));
  assert.equal(exit, 6);
  assert.match(message, /planned the overlay of this box/);
  assert.deepEqual(await leftOver(place.at("w")), []);
});
