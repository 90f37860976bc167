// also slow: every mode and isolation, and images made for the test
import assert from "node:assert/strict";
import { chown, mkdir, readdir } from "node:fs/promises";
import test, { describe } from "node:test";
import { noOverlay } from "../docker/box/open-box.ts";
import { overNetwork } from "../fixtures/engine-over-network.ts";
import { skip } from "../fixtures/engine.ts";
import { imageAfter, ownImage } from "../fixtures/own-image.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household, sandboxExec } from "./box-command.ts";
import { firstOf, slowTest } from "../fixtures/slow-test.ts";

/** The user of a box has a name, a home and a shell for the programs that ask. */

const ASK = `set -e
whoami; id -un; id -gn
node -p 'const u = os.userInfo(); [u.username, u.homedir, u.shell].join(" ")'
python3 -c 'import getpass, grp, os, pwd; u = pwd.getpwuid(os.getuid()); print(getpass.getuser(), u.pw_dir, u.pw_shell, grp.getgrgid(os.getgid()).gr_name)'
echo ~ $HOME; getent passwd nobody root | cut -d: -f1 | sort | tr '\\n' ' '`;

const said = (user: string, group = user): string =>
  [user, user, group, `${user} /home/box /bin/bash`, `${user} /home/box /bin/bash ${group}`].join("\n") +
  "\n/home/box /home/box\nnobody root ";

const asked = async (
  place: Scratch,
  flags: readonly string[],
  script = ASK,
  start: Parameters<typeof sandboxExec>[2] = {},
): Promise<string> => {
  const words = [...flags, "--", "bash", "-c", script];
  const { code, stdout, stderr } = await sandboxExec(place, words, start);
  assert.deepEqual(
    [code, stderr.replaceAll(/^(?:harness: no change reached|note: commands run as uid 0).*\n/gm, "")],
    [0, ""],
    stdout.toString(),
  );
  return stdout.toString();
};

describe("in any mode and isolation", { concurrency: 2 }, () => {
  for (const flags of firstOf([
    [],
    ["--mode", "read-only"],
    ["--mode", "danger-full-access"],
    ["--isolation", "overlay"],
    ["--isolation", "copy"],
  ]))
    test(
      `a box has its user: ${flags.join(" ")}`,
      { skip: skip || (flags.includes("overlay") && noOverlay) },
      async () => {
        await using place = await household();
        assert.equal(await asked(place, flags), said("box"));
      },
    );

  test(
    "any uid has a user name",
    { skip: skip || (process.getuid?.() !== 0 && "gives folders away") },
    async () => {
      await using place = await household();
      for (const [uid, gid, name] of [
        [64_123, 64_124, said("box")],
        [33, 65_534, said("box")],
        [0, 0, said("root")],
      ] as const) {
        await chown(place.at("work"), uid, gid);
        assert.equal(await asked(place, []), name);
      }
    },
  );

  test("the user cannot be changed from inside", { skip }, async () => {
    await using place = await household();
    const tries = `for f in /etc/passwd /etc/group; do (echo x:x:0:0::/: >> $f) 2>/dev/null && echo WROTE; rm -f $f 2>/dev/null && echo GONE; (mv $f /tmp/x) 2>/dev/null && echo MOVED; done; true`;
    for (const mode of ["workspace-write", "danger-full-access"])
      assert.equal(await asked(place, ["--mode", mode], tries), "");
    assert.equal(await asked(place, []), said("box"));
  });

  test("a foreign image keeps its own users after it", { skip }, async () => {
    await using own = await ownImage("ENV OTHER=1");
    await using place = await household();
    const flags = ["--image", own.name];
    const script = "id -un; getent passwd box games | cut -d: -f1,3,6; getent group box";
    const first = await asked(place, flags, script);
    assert.equal(first, "box\nbox:1000:/home/box\ngames:5:/usr/games\nbox:x:1000:\n");
    assert.equal(await asked(place, flags, script), first);
  });

  test("a remote engine reads no file of this machine", { skip }, async () => {
    await using far = await overNetwork();
    await using own = await ownImage("ENV OTHER=1");
    await using place = await household();
    const env = { DOCKER_HOST: far.host };
    for (const flags of [[], ["--isolation", "copy"], ["--mode", "read-only"]])
      assert.equal(await asked(place, flags, ASK, { env }), said("box"));
    const script =
      "id -un; getent passwd games | cut -d: -f1; grep -c /etc/passwd /proc/self/mountinfo || true";
    for (const flags of [[], ["--isolation", "copy"]])
      assert.equal(await asked(place, ["--image", own.name, ...flags], script, { env }), "box\ngames\n0\n");
    assert.match(await asked(place, ["--image", own.name], script), /^box\ngames\n[1-9]/);
  });

  test(
    "a local engine with another view of the files reads none either",
    { skip: skip || (process.getuid?.() !== 0 && "hides a folder") },
    async () => {
      await using place = await household({}, "/var/tmp");
      await mkdir(place.at("run"), { mode: 0o700 });
      const env = { XDG_RUNTIME_DIR: place.at("run") };
      const under = [
        "unshare",
        "-m",
        "sh",
        "-c",
        `mount -t tmpfs -o mode=700 none '${place.at("run")}' && exec "$0" "$@"`,
      ];
      for (const isolation of ["bind", "copy"])
        assert.equal(await asked(place, ["--isolation", isolation], ASK, { env, under }), said("box"));
      assert.deepEqual(await readdir(place.at("run")), []);
    },
  );
});

/** The lists of an image may be links, as where a store keeps all files. */
slowTest("an image whose user lists are links or missing has its user too", { skip }, async () => {
  await using place = await household();
  await using linked = await imageAfter(
    "mkdir /store && mv /etc/passwd /etc/group /store/ && ln -s ../store/passwd /etc/passwd && ln -s /store/group /etc/group",
  );
  await using bare = await imageAfter("rm /etc/passwd /etc/group");
  const script = "id -un; id -gn; echo ~; getent passwd games | cut -d: -f1";
  for (const isolation of ["bind", "copy"]) {
    const flags = ["--isolation", isolation, "--image"];
    assert.equal(await asked(place, [...flags, linked.name], script), "box\nbox\n/home/box\ngames\n");
    assert.equal(await asked(place, [...flags, bare.name], script), "box\nbox\n/home/box\n");
  }
});

test("an image's own entry with that name or number is replaced", { skip }, async () => {
  await using place = await household();
  await using own = await imageAfter(
    "echo box:x:4321:4321::/other:/bin/x >>/etc/passwd; echo dev:x:1000:1000::/home/dev:/bin/bash >>/etc/passwd; echo box:x:4321: >>/etc/group; echo dev:x:1000: >>/etc/group",
  );
  const script =
    'whoami; id -un; id -gn; python3 -c \'import getpass, os; print(getpass.getuser(), os.path.expanduser("~box"), os.path.expanduser("~dev"))\' 2>/dev/null || echo no python; getent passwd 4321 dev | cut -d: -f1,3';
  for (const mode of ["workspace-write", "read-only"])
    assert.match(
      await asked(place, ["--image", own.name, "--mode", mode], script),
      /^box\nbox\nbox\n(?:box \/home\/box \/home\/dev|no python)\ndev:1000\n$/,
    );
});
