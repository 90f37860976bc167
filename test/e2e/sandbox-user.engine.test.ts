import assert from "node:assert/strict";
import { chown } from "node:fs/promises";
import test, { describe } from "node:test";
import { noOverlay } from "../docker/isolation/open-box.ts";
import { skip } from "../fixtures/engine.ts";
import { ownImage } from "../fixtures/own-image.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household, sandboxExec } from "./box-command.ts";

/** The user of a box has a name, a home and a shell for the programs that ask. */

const ASK = `set -e
whoami; id -un; id -gn
node -p 'const u = os.userInfo(); [u.username, u.homedir, u.shell].join(" ")'
python3 -c 'import getpass, grp, os, pwd; u = pwd.getpwuid(os.getuid()); print(getpass.getuser(), u.pw_dir, u.pw_shell, grp.getgrgid(os.getgid()).gr_name)'
echo ~ $HOME; getent passwd nobody root | cut -d: -f1 | sort | tr '\\n' ' '`;

const said = (user: string, group = user): string =>
  [user, user, group, `${user} /home/box /bin/bash`, `${user} /home/box /bin/bash ${group}`].join("\n") +
  "\n/home/box /home/box\nnobody root ";

const asked = async (place: Scratch, flags: readonly string[], script = ASK): Promise<string> => {
  const { code, stdout, stderr } = await sandboxExec(place, [...flags, "--", "bash", "-c", script]);
  assert.deepEqual(
    [code, stderr.replaceAll(/^(?:harness: nothing of it|note: commands run as uid 0).*\n/gm, "")],
    [0, ""],
    stdout.toString(),
  );
  return stdout.toString();
};

describe("whatever its mode and isolation", { concurrency: 2 }, () => {
  for (const flags of [
    [],
    ["--mode", "read-only"],
    ["--mode", "danger-full-access"],
    ["--isolation", "overlay"],
    ["--isolation", "copy"],
  ])
    test(
      `a box has its user: ${flags.join(" ")}`,
      { skip: skip || (flags.includes("overlay") && noOverlay) },
      async () => {
        await using place = await household();
        assert.equal(await asked(place, flags), said("box"));
      },
    );

  test("any number has", { skip: skip || (process.getuid?.() !== 0 && "gives folders away") }, async () => {
    await using place = await household();
    for (const [uid, gid, name] of [
      [64_123, 64_124, said("box")],
      [33, 65_534, said("box")],
      [0, 0, said("root")],
    ] as const) {
      await chown(place.at("work"), uid, gid);
      assert.equal(await asked(place, []), name);
    }
  });

  test("it cannot be changed from inside", { skip }, async () => {
    await using place = await household();
    const tries = `for f in /etc/passwd /etc/group; do (echo x:x:0:0::/: >> $f) 2>/dev/null && echo WROTE; rm -f $f 2>/dev/null && echo GONE; (mv $f /tmp/x) 2>/dev/null && echo MOVED; done; true`;
    for (const mode of ["workspace-write", "danger-full-access"])
      assert.equal(await asked(place, ["--mode", mode], tries), "");
    assert.equal(await asked(place, []), said("box"));
  });

  test("an image of others keeps its own users behind it", { skip }, async () => {
    await using own = await ownImage("ENV OTHER=1");
    await using place = await household();
    const flags = ["--image", own.name];
    const script = "id -un; getent passwd box games | cut -d: -f1,3,6; getent group box";
    const first = await asked(place, flags, script);
    assert.equal(first, "box\nbox:1000:/home/box\ngames:5:/usr/games\nbox:x:1000:\n");
    assert.equal(await asked(place, flags, script), first);
  });
});
