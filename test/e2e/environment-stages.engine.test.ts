// slow: it builds an image for each way that stages depend on each other
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { shortHash } from "../../src/docker/image-inputs.ts";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { engine } from "../fixtures/engine-api.ts";
import { image, skip } from "../fixtures/engine.ts";
import { bareImage, ownImage } from "../fixtures/own-image.ts";
import { type Scratch, scratch } from "../fixtures/scratch.ts";
import { household, inBox, sandboxExec } from "./box-command.ts";

const harness = (place: Scratch, ...words: readonly string[]): Promise<Ended> =>
  runProgram("bin/harness", words, { home: place.path, cwd: place.at("work") });

async function trustAll(place: Scratch): Promise<string> {
  const shown = (await harness(place, "trust", "--show")).stdout;
  const { hash } = JSON.parse((await harness(place, "trust", "--show", "--json")).stdout) as { hash: string };
  const { code, stderr } = await harness(place, "trust", "--yes", hash);
  assert.equal(code, 0, stderr);
  return shown;
}

/** Of builds with this home. */
const stageImages = async (place: Scratch): Promise<readonly string[]> =>
  (await engine.api.listImages())
    .filter(
      ({ Labels }) => Labels?.["dev.harness.stage_state"] === shortHash(place.at(".local/state/harness")),
    )
    .flatMap(({ RepoTags }) => RepoTags ?? [])
    .filter((tag) => /^harness-env:.*-stage$/.test(tag));

/** The content of its files is printed by the layer's own lines, so a box must contain it. */
const dockerfile = (kit: string, last: string): string => `FROM ${image} AS first
COPY own.txt /opt/own.txt
RUN mkdir -p /opt/made/.hidden "/opt/made/a b" && echo made > /opt/made/file && echo in > /opt/made/.hidden/in \\
  && ln -s ../file /opt/made/.hidden/link && ln -s made/file /opt/there && echo x > "/opt/made/a b/x" \\
  && chown -R 1234:1235 /opt/made && chmod 4755 /opt/made/file && echo stray > /opt/stray
RUN ls -A /workspace /home/*/work 2>/dev/null | wc -l > /opt/seen; ls /sys/class/net > /opt/nets; true
FROM first AS second
COPY --from=${kit} /kit/bin/tool /kit/missing /opt/
FROM ${image}
WORKDIR /opt/kit
RUN mkdir -p /opt/there.d made && chmod 705 made
COPY --from=first /opt/made made
COPY --from=first /opt/there /opt/own.txt /opt/seen /opt/nets ./
COPY --from=first /opt/there renamed
COPY --from=first /opt/own.txt /opt/there.d
COPY --from=${kit} --chown=7:8 --chmod=755 /kit/bin/tool /usr/local/bin/
RUN ${last}
`;

const LOOK = `cd /opt/kit; ls -A; cat there renamed own.txt seen nets /opt/there.d/own.txt made/.hidden/link "made/a b/x"
stat -c '%a %u:%g %n' made made/file made/.hidden /usr/local/bin/tool; readlink made/.hidden/link; tool
ls -d /opt/stray /opt/made /.harness-taken /opt/missing 2>/dev/null; true`;

const SAID = `made
nets
own.txt
renamed
seen
there
made
made
own
0
lo
own
made
x
705 0:0 made
755 1234:1235 made/file
755 1234:1235 made/.hidden
755 7:8 /usr/local/bin/tool
../file
the tool
`;

test("files taken from stages and images are in the layer, and nothing else of these", { skip }, async () => {
  await using held = await scratch();
  await held.write("kit/bin/tool", "#!/bin/sh\necho the tool\n");
  await using kit = await bareImage(held.path, ["kit"]);
  await using place = await household({
    ".devcontainer/devcontainer.json": JSON.stringify({ build: { dockerfile: "Dockerfile" } }),
    ".devcontainer/Dockerfile": dockerfile(kit.name, "exit 7"),
    ".devcontainer/own.txt": "own\n",
  });
  try {
    const shown = await trustAll(place);
    assert.match(
      shown,
      /builds in a separate container, to copy files from it: [^\n]*echo stray > \/opt\/stray/,
    );
    assert.match(shown, /own\.txt: own/);
    const failed = await harness(place, "env", "build");
    assert.equal(failed.code, 1, failed.stderr);
    assert.match(failed.stderr, /set-up failed: exit 7/);
    assert.equal((await stageImages(place)).length, 1, "it is kept for the build that goes on");

    await place.write("work/.devcontainer/Dockerfile", dockerfile(kit.name, "true"));
    await trustAll(place);
    const built = await harness(place, "env", "build");
    assert.equal(built.code, 0, built.stderr);
    assert.doesNotMatch(built.stderr, /^\d+\/\d+ .*echo stray/m, "the stage is not made again");
    assert.equal(await inBox(place, LOOK), SAID);
    assert.deepEqual(await stageImages(place), []);

    await place.write("work/.devcontainer/own.txt", "other\n");
    const changed = await harness(place, "env", "show");
    assert.match(changed.stdout + changed.stderr, /is ignored: it has changed since it was trusted/);
  } finally {
    await harness(place, "env", "rm", "--all");
  }
});

const PATTERNS = `FROM ${image} AS made
RUN mkdir -p /lib/kit/one /lib/kit/two/deep /lib/kit/.dotted && cd /lib/kit && touch one/a.so one/b.so one/.c.so one/d.txt two/a2.so two/deep/e.so \\
  && ln -s b.so one/l.so && ln -s one link && echo in > .dotted/in && echo top > /top.whl && touch "one/with a.so"
FROM ${image}
COPY --from=made /lib/kit/one/*.so /opt/names/
COPY --from=made /lib/kit/*/[ab]?.so /opt/none-there* /opt/ways/
COPY --from=made --chmod=711 --chown=5:6 /lib/kit/.d* /opt/folder
COPY --from=made /*.whl /opt/
COPY --from=made /lib/kit/t*/d??p /lib/kit/o*e /opt/both/
`;

test("patterns match names in a stage as COPY does", { skip }, async () => {
  await using place = await household({
    ".devcontainer/devcontainer.json": JSON.stringify({ build: { dockerfile: "Dockerfile" } }),
    ".devcontainer/Dockerfile": PATTERNS,
  });
  try {
    await trustAll(place);
    const built = await harness(place, "env", "build");
    assert.equal(built.code, 0, built.stderr);
    assert.equal(
      await inBox(place, "cd /opt; find names ways folder both *.whl | sort; stat -c '%a %u:%g' folder/in"),
      `both
both/.c.so
both/a.so
both/b.so
both/d.txt
both/e.so
both/l.so
both/with a.so
folder
folder/in
names
names/.c.so
names/a.so
names/b.so
names/l.so
names/with a.so
top.whl
ways
ways/a2.so
711 5:6
`,
    );
  } finally {
    await harness(place, "env", "rm", "--all");
  }
});

test(
  "an image removed after the build is reported with the command to restore it, and boxes start as before",
  { skip },
  async () => {
    await using held = await scratch();
    await held.write("kit/tool", "#!/bin/sh\necho the tool\n");
    const kit = await bareImage(held.path, ["kit"]);
    await using place = await household({
      ".devcontainer/devcontainer.json": JSON.stringify({ build: { dockerfile: "Dockerfile" } }),
      ".devcontainer/Dockerfile": `FROM ${image}\nCOPY --from=${kit.name} --chmod=755 /kit/tool /usr/local/bin/\n`,
    });
    try {
      await trustAll(place);
      const built = await harness(place, "env", "build");
      assert.equal(built.code, 0, built.stderr);
      assert.doesNotMatch((await harness(place, "env", "show")).stdout, /no longer/);
      await kit[Symbol.asyncDispose]();
      const told = `the image ${kit.name}, from which it is built, is no longer on this engine, so the environment stays as it was built. To rebuild it: docker pull ${kit.name}, then: harness env build`;
      const used = await sandboxExec(place, ["--", "tool"]);
      assert.equal(used.stdout.toString(), "the tool\n");
      assert.ok(used.stderr.includes(told), used.stderr);
      const shown = await harness(place, "env", "show");
      assert.ok(shown.stdout.includes(`${told}\n`), shown.stdout + shown.stderr);
      const again = await harness(place, "env", "build");
      assert.equal(again.code, 6);
      assert.match(
        again.stderr,
        new RegExp(
          `the image ${kit.name}, from which the environment is built, .*\\n  next: docker pull ${kit.name}, then: harness env build`,
        ),
      );

      const folder = place.at(".local/state/harness/environments");
      const [id = ""] = await readdir(folder);
      const record = JSON.parse(await readFile(path.join(folder, id, "record"), "utf8")) as { image: string };
      await engine.api.getImage(record.image).remove({ force: true });
      const unused = await sandboxExec(place, ["--", "true"]);
      assert.equal(unused.code, 0);
      assert.ok(
        unused.stderr.includes(
          `is not used: the engine no longer has the image that boxes start from, and the image ${kit.name}, from which it is built, is no longer on this engine. Rebuild it: docker pull ${kit.name}, then: harness env build`,
        ),
        unused.stderr,
      );
    } finally {
      await harness(place, "env", "rm", "--all");
    }
  },
);

test(
  "a file missing from a stage is reported, and a hostile stage stays within the layer",
  { skip },
  async () => {
    await using own = await ownImage();
    const lines = (taken: string): string => `FROM ${own.name} AS odd
RUN mkdir -p /odd/up && ln -s /etc /odd/up/out && ln -s ../../../../../../etc/hostname /odd/name && ln -s /nowhere /odd/none
FROM ${image}
RUN mkdir -p /opt/up/out
${taken}
RUN ls -A /opt /opt/up > /said; cat /opt/name >> /said; true
`;
    await using place = await household({
      ".devcontainer/devcontainer.json": JSON.stringify({ build: { dockerfile: "Dockerfile" } }),
    });
    try {
      for (const [taken, why] of [
        ["COPY --from=odd /odd/missing /opt/", /the stage has no \/odd\/missing/],
        ["COPY --from=odd /odd/none /opt/", /the stage has no \/odd\/none/],
        ["COPY --from=odd /odd/m*g /opt/", /the stage has no \/odd\/m\*g/],
        ["COPY --from=odd /etc/p*d /opt/one", /several files need a folder/],
        [
          "COPY --from=harness-test-none:1 /a /opt/",
          /the image harness-test-none:1, from which the environment is built, is not on this engine\n {2}next: docker pull harness-test-none:1, then: harness env build/,
        ],
        ["COPY --from=odd /odd/up /opt/up", /set-up failed: [^]*cannot overwrite/],
      ] as const) {
        await place.write("work/.devcontainer/Dockerfile", lines(taken));
        await trustAll(place);
        const failed = await harness(place, "env", "build");
        assert.notEqual(failed.code, 0, taken);
        assert.match(failed.stderr, why);
      }
      await place.write("work/.devcontainer/Dockerfile", lines("COPY --from=odd /odd/name /opt/name"));
      await trustAll(place);
      const built = await harness(place, "env", "build");
      assert.equal(built.code, 0, built.stderr);
      const host = execFileSync("hostname").toString().trim();
      assert.ok(!(await inBox(place, "cat /said")).includes(host), "a link leads nowhere but into the image");
    } finally {
      await harness(place, "env", "rm", "--all");
      assert.deepEqual(await stageImages(place), []);
    }
  },
);

test("a stage's image is kept only during the builds that use it", { skip }, async () => {
  await using place = await household({
    ".devcontainer/devcontainer.json": JSON.stringify({ build: { dockerfile: "Dockerfile" } }),
    ".devcontainer/Dockerfile": `FROM ${image} AS odd
RUN mkdir /odd && echo ${randomUUID()} > /odd/file
FROM ${image}
RUN sleep 3
COPY --from=odd /odd/file /opt/file
RUN exit 7
`,
  });
  await using other = await household({});
  try {
    await trustAll(place);
    let removing: Promise<unknown> | undefined;
    const failed = await runProgram("bin/harness", ["env", "build"], {
      home: place.path,
      cwd: place.at("work"),
      onStderr: (told) => {
        if (told.includes("sleep 3")) removing ??= removed(place);
      },
    });
    assert.match(String(await removing), /HTTP code 409/, "the engine refuses its removal");
    assert.match(failed.stderr, /set-up failed: exit 7/);
    const left = await stageImages(place);
    assert.equal(left.length, 1);
    await harness(other, "env", "rm", "--all");
    assert.deepEqual(await stageImages(place), left, "it does not belong to the other one");
  } finally {
    await harness(place, "env", "rm", "--all");
  }
  assert.deepEqual(await stageImages(place), []);
});

/** What the engine says when the stages of this home are removed. */
async function removed(place: Scratch): Promise<unknown> {
  const [stage = "none"] = await stageImages(place);
  return engine.api
    .getImage(stage)
    .remove()
    .catch((thrown: unknown) => thrown);
}
