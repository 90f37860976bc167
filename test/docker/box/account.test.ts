import assert from "node:assert/strict";
import { statSync } from "node:fs";
import test from "node:test";
import { accountFor, accountTexts } from "../../../src/docker/box/account.ts";
import type { Engine } from "../../../src/docker/engine.ts";
import { refusalOf } from "../../fixtures/refusal.ts";
import { scratch } from "../../fixtures/scratch.ts";

const ALPINE = {
  passwd: "root:x:0:0:root:/root:/bin/ash\nbox:x:7:7::/old:/bin/x\n\nnode:x:1000:1000::/home/node:/bin/sh",
  group: "root:x:0:root\nnode:x:1000:node\n",
};

test("the box's user comes first, is the only one of its name, and has root's shell", () => {
  assert.deepEqual(accountTexts(ALPINE, { uid: 1000, gid: 1000 }), {
    passwd:
      "box:x:1000:1000:box:/home/box:/bin/ash\nroot:x:0:0:root:/root:/bin/ash\nnode:x:1000:1000::/home/node:/bin/sh\n",
    group: "box:x:1000:\nroot:x:0:root\nnode:x:1000:node\n",
  });
});

test("root is renamed, with the box's home", () => {
  const { passwd, group } = accountTexts(ALPINE, { uid: 0, gid: 0 });
  assert.match(passwd, /^root:x:0:0:root:\/home\/box:\/bin\/ash\nbox:x:7:/);
  assert.equal(group, "root:x:0:\nnode:x:1000:node\n");
});

test("an image without user lists, or with a root that cannot log in, gets the common shell", () => {
  const none = accountTexts({ passwd: "", group: "" }, { uid: 5, gid: 6 });
  assert.deepEqual(none, { passwd: "box:x:5:6:box:/home/box:/bin/sh\n", group: "box:x:6:\n" });
  for (const shell of ["/sbin/nologin", "/bin/false", "sh", "", "/bin/sh -c id", "/a:b"])
    assert.match(
      accountTexts({ passwd: `root:x:0:0:root:/root:${shell}\n`, group: "" }, { uid: 5, gid: 6 }).passwd,
      /^box:x:5:6:box:\/home\/box:(?:\/bin\/sh|\/a)\n/,
    );
});

test("a state folder that cannot hold the lists is reported, and no box starts", async () => {
  await using home = await scratch({ state: "no folder" });
  const engine = { endpoint: { host: "unix:///none" } } as unknown as Engine;
  const [exit, message] = await refusalOf(() =>
    accountFor({
      engine,
      folder: home.at("state"),
      image: "sha256:0",
      own: true,
      user: { uid: 5, gid: 6 },
      labels: {},
    }),
  );
  assert.equal(exit, 6);
  assert.ok(message.includes(home.at("state")), message);
});

test("the user lists are readable in the box, however strict the umask", async () => {
  await using home = await scratch();
  const engine = { endpoint: { host: "unix:///none" } } as unknown as Engine;
  const before = process.umask(0o077);
  try {
    const named = await accountFor({
      engine,
      folder: home.at("state"),
      image: "sha256:0",
      own: true,
      user: { uid: 5, gid: 6 },
      labels: {},
    });
    assert.ok("account" in named);
    const modes = [named.account.passwd, named.account.group].map((file) => statSync(file).mode & 0o777);
    assert.deepEqual(modes, [0o644, 0o644]);
  } finally {
    process.umask(before);
  }
});
