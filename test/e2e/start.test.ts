import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, utimes } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import { scratch, type Scratch } from "../fixtures/scratch.ts";
import { commandClasses } from "../fixtures/command-classes.ts";
import { type Ended, launch, ROOT } from "./package.ts";

/** A checkout that is installed and built, with a Node and a harness that say what they are asked. */
async function checkout(): Promise<Scratch> {
  const place = await scratch({
    "package-lock.json": "{}\n",
    "package.json": "{}\n",
    "src/main.ts": "",
    "bin/build.ts": "",
    "dist/main.cjs": "",
    "oclif.manifest.json": "{}",
  });
  await cp(path.join(ROOT, "start.sh"), place.at("start.sh"));
  const sum = await promisify(execFile)("/bin/sh", ["-c", 'cksum <"$0"', place.at("package-lock.json")]);
  await place.write("node_modules/.harness-packages", sum.stdout);
  await place.write("node_modules/.bin/node", "#!/bin/sh\necho v24.0.0\n", 0o755);
  await place.write("bin/harness", '#!/bin/sh\necho "harness $* in $PWD"\n', 0o755);
  const later = Date.now() / 1000 + 60;
  await utimes(place.at("oclif.manifest.json"), later, later);
  return place;
}

const start = (
  place: Scratch,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> =>
  launch(place.at("start.sh"), args, { env: { PATH: "/usr/bin:/bin", ...env }, cwd: place.path });

test("installed packages and builds are kept", async () => {
  await using place = await checkout();
  const { code, stderr } = await start(place, []);
  assert.equal(code, 0);
  assert.match(stderr, /✓ packages .* kept\n.*✓ node .* v24\.0\.0\n.*✓ build .* kept\n$/);
});

test("a missing bundle or a half-made manifest is rebuilt", async () => {
  await using gone = await checkout();
  await promisify(execFile)("rm", ["-r", gone.at("dist")]);
  await using half = await checkout();
  await half.write("oclif.manifest.json", "");
  for (const place of [gone, half]) assert.match((await start(place, [])).stderr, /✓ build .* bundled\n$/);
});

test("a missing folder for temporary files is named", async () => {
  await using place = await checkout();
  const { code, stdout, stderr } = await start(place, [], { TMPDIR: "/nowhere" });
  assert.deepEqual(
    [code, stdout, stderr],
    [1, "", "error: no file can be made in /nowhere\n  next: TMPDIR=/a/folder/with/space ./start.sh\n"],
  );
});

test("from a deleted folder no command runs elsewhere", async () => {
  await using place = await checkout();
  const line = 'mkdir gone; cd gone; rmdir ../gone; exec "$0" --no-install run it';
  const ended = await launch("/bin/sh", ["-c", line, place.at("start.sh")], {
    env: { PATH: "/usr/bin:/bin" },
    cwd: place.path,
  });
  assert.deepEqual([ended.code, ended.stdout], [2, ""]);
  assert.match(
    ended.stderr,
    /error: the current folder no longer exists\n {2}next: cd to a folder that exists\n$/,
  );
});

/** Another system, as `uname` tells it. */
async function on(system: string, args: readonly string[]): Promise<Ended> {
  await using place = await checkout();
  await place.write("fake/uname", `#!/bin/sh\necho ${system}\n`, 0o755);
  return await start(place, args, { PATH: `${place.at("fake")}:/usr/bin:/bin` });
}

test("macOS gets a note about requirements and missing tests, and continues", async () => {
  const { code, stderr } = await on("Darwin", []);
  assert.equal(code, 0);
  assert.match(
    stderr,
    /macOS: needs Node 24 with npm.*Docker Desktop,\n.*colima start.*not tested on macOS/s,
  );
  assert.match(stderr, /✓ build/);
});

test("Windows itself is refused, and nothing is set up", async () => {
  const { code, stdout, stderr } = await on("MINGW64_NT-10.0", []);
  assert.deepEqual([code, stdout], [2, ""]);
  assert.match(stderr, /does not run on Windows itself\n {2}next: wsl --install/);
});

test("Linux gets no note about other systems", async () => {
  const { code, stderr } = await on("Linux", []);
  assert.equal(code, 0);
  assert.doesNotMatch(stderr, /macOS|Windows/);
});

test("without npm the remedy fits the system", async () => {
  for (const [system, said] of [
    ["Darwin", /e\.g\.: brew install node/],
    ["Linux", /e\.g\.: apt-get install/],
  ] as const) {
    await using place = await checkout();
    await place.write("package-lock.json", "other\n");
    await place.write("fake/uname", `#!/bin/sh\necho ${system}\n`, 0o755);
    for (const name of ["cat", "cksum", "date", "dirname", "grep", "head", "mktemp", "rm", "sed", "flock"])
      await promisify(execFile)("/bin/sh", [
        "-c",
        `p=$(command -v ${name}) && ln -s "$p" "$0/${name}"`,
        place.at("fake"),
      ]);
    const { code, stderr } = await start(place, [], { PATH: place.at("fake") });
    assert.equal(code, 1, stderr);
    assert.match(stderr, said);
  }
});

/** What may ask a model, or makes vectors by one; a further command belongs here or into the list of start.sh. */
const ASKS = "acp approve batch chat eval index init model resume run search setup teardown".split(" ");

test("commands that need no model are set up without model and sidecar", async () => {
  await using place = await checkout();
  await place.write("bin/harness", '#!/bin/sh\necho "$*"\n', 0o755);
  const words = new Set([...(await commandClasses()).keys()].map((id) => id.split(":")[0] ?? ""));
  for (const word of words) {
    const [setup = ""] = (await start(place, [word])).stdout.split("\n");
    assert.equal(
      setup,
      ASKS.includes(word) ? "setup --brief" : "setup --brief --no-sidecars --no-model",
      word,
    );
  }
});
