import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { rename, rm, symlink, writeFile } from "node:fs/promises";
import test from "node:test";
import { hostFrom } from "../../../src/app/host.ts";
import { readTrust, trustByHash, trustedFile } from "../../../src/app/project/project-trust.ts";
import { scratch } from "../../fixtures/scratch.ts";

const FILES = {
  "w/.harness/skills/tidy/SKILL.md": "---\nname: tidy\ndescription: Tidies up.\n---\nRemove what is old.\n",
  "w/.harness/skills/tidy/lib/run.sh": "echo tidy\n",
  "w/.harness/commands/ship.md": "---\ndescription: Ships it.\n---\nPush all of it.\n",
};

async function project(files: Readonly<Record<string, string>> = FILES) {
  const place = await scratch(files);
  const host = hostFrom({ HOME: place.at("home") });
  const see = () => readTrust(host, place.at("w"));
  return {
    place,
    see,
    standings: async () => (await see()).shown.items.map(({ kind, standing }) => `${kind} ${standing}`),
    trust: async () => {
      const seen = await see();
      await trustByHash(host, seen, seen.shown.hash);
    },
    skills: () => trustedFile(host, place.at("w"), "skills"),
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
}

test("folders of skills and commands are shown with their whole content", async () => {
  await using here = await project();
  const { shown } = await here.see();
  const does = new Set(shown.items.flatMap(({ does: each }) => each.map(({ text }) => text)));
  for (const text of [
    "offers the model the skill tidy: Tidies up.",
    ".harness/skills/tidy/SKILL.md: Remove what is old.",
    ".harness/skills/tidy/lib/run.sh: echo tidy",
    "/ship in a chat sends for you (Ships it.):",
    ".harness/commands/ship.md: Push all of it.",
  ])
    assert.ok(does.has(text), text);
  assert.deepEqual(
    shown.items.map(({ waits, told: alone }) => [waits, alone]),
    [
      [true, false],
      [true, false],
    ],
  );
});

test("a file that is changed, added, renamed or removed requires trust again", async () => {
  const changes: readonly ((at: (name: string) => string) => Promise<void>)[] = [
    (at) => writeFile(at("w/.harness/skills/tidy/SKILL.md"), "other\n"),
    (at) => writeFile(at("w/.harness/skills/tidy/new"), ""),
    (at) => rename(at("w/.harness/skills/tidy/lib/run.sh"), at("w/.harness/skills/tidy/lib/run")),
    (at) => rm(at("w/.harness/skills/tidy/lib/run.sh")),
  ];
  for (const change of changes) {
    await using here = await project();
    await here.trust();
    assert.deepEqual(await here.standings(), ["skills trusted", "commands trusted"]);
    const trusted = await here.skills();
    assert.ok(trusted.state === "trusted" && trusted.named.has(".harness/skills/tidy/lib/run.sh"));
    await change(here.place.at);
    assert.deepEqual(await here.standings(), ["skills changed", "commands trusted"]);
    assert.equal((await here.skills()).state, "untrusted");
    const [skills] = (await here.see()).shown.items;
    assert.ok((skills?.diff.length ?? 0) > 0 || skills?.files.includes(".harness/skills/tidy/new"));
  }
});

test("links, pipes, oversized and binary files are never accepted, and an empty folder is ignored", async () => {
  const odd: readonly (readonly [string, (at: (name: string) => string) => Promise<void>, RegExp])[] = [
    ["a link in it", (at) => symlink("/etc/hostname", at("w/.harness/skills/x")), /skills\/x.*it is a link/],
    [
      "a script that is no text",
      (at) => writeFile(at("w/.harness/skills/x"), Buffer.from("#!/bin/sh\n\u00ff", "latin1")),
      /skills\/x.*not UTF-8/,
    ],
    [
      "a large picture",
      (at) => writeFile(at("w/.harness/skills/x"), Buffer.alloc(2 ** 20 + 1, 0xff)),
      /skills\/x.*larger than the limit/,
    ],
    [
      "many pictures",
      async (at) => {
        for (let each = 0; each < 5; each += 1)
          await writeFile(at(`w/.harness/skills/f${each}`), Buffer.alloc(2 ** 20, 0xff));
      },
      /its binary files are larger than 4\.0 MiB/,
    ],
    [
      "a lot",
      (at) => writeFile(at("w/.harness/skills/x"), "x".repeat(2 ** 20)),
      /larger than 1\.0 MiB|larger than the limit/,
    ],
    [
      "many",
      async (at) => {
        for (let each = 0; each < 201; each += 1) await writeFile(at(`w/.harness/skills/f${each}`), "");
      },
      /more than 200 files/,
    ],
    [
      "a link to it",
      async (at) => {
        await rename(at("w/.harness/skills"), at("elsewhere"));
        await symlink(at("elsewhere"), at("w/.harness/skills"));
      },
      /is a link/,
    ],
  ];
  for (const [what, make, why] of odd) {
    await using here = await project();
    await make(here.place.at);
    const [skills, commands] = (await here.see()).shown.items;
    assert.match(`${skills?.files.join()} ${skills?.problem}`, why, what);
    assert.equal(commands?.problem, null, "the twin");
  }
  await using here = await project({ "w/.harness/skills/.keep/none": "" });
  await rm(here.place.at("w/.harness/skills/.keep/none"));
  assert.deepEqual(await here.standings(), []);
});

const PICTURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0xff]);
const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

test("a binary file of a skill is trusted by its hash, shown by its hash, and requires trust again after a change", async () => {
  await using here = await project();
  const picture = here.place.at("w/.harness/skills/tidy/logo.png");
  await writeFile(picture, PICTURE);
  const shown = async () =>
    (await here.see()).shown.items.flatMap(({ does }) =>
      does.map(({ text, loosens }) => ({ text, loosens })),
    );
  const text = `.harness/skills/tidy/logo.png: binary, 10 bytes, sha256 ${hashOf(PICTURE)}; not shown`;
  assert.deepEqual(
    (await shown()).filter((each) => each.text.includes("logo.png")),
    [{ text, loosens: true }],
  );
  await here.trust();
  assert.deepEqual(await here.standings(), ["skills trusted", "commands trusted"]);
  const other = Buffer.from([...PICTURE.subarray(0, 9), 0xfe]);
  await writeFile(picture, other);
  assert.deepEqual(await here.standings(), ["skills changed", "commands trusted"]);
  const [skills] = (await here.see()).shown.items;
  assert.deepEqual(skills?.diff.slice(-2), [
    `-binary, 10 bytes, sha256 ${hashOf(PICTURE)}; not shown`,
    `+binary, 10 bytes, sha256 ${hashOf(other)}; not shown`,
  ]);
  await writeFile(picture, PICTURE);
  assert.deepEqual(await here.standings(), ["skills trusted", "commands trusted"], "the twin");
});

test("a binary command and a binary SKILL.md are not usable", async () => {
  await using here = await project();
  await writeFile(here.place.at("w/.harness/commands/ship.md"), PICTURE);
  const [, commands] = (await here.see()).shown.items;
  assert.match(commands?.problem ?? "", /not UTF-8/);
  await writeFile(here.place.at("w/.harness/skills/tidy/SKILL.md"), PICTURE);
  const [skills] = (await here.see()).shown.items;
  assert.match(skills?.does[0]?.text ?? "", /tidy is not a usable skill: it is not text/);
});

test("names that look like other names are pointed out", async () => {
  await using here = await project({
    ...FILES,
    "w/.harness/commands/sh\u0456p.md": "x\n",
    "w/.harness/\u0441onfig.json": "{}",
    "w/.Harness/config.json": "{}",
  });
  const { shown } = await here.see();
  const text = [
    ...shown.look_alikes,
    ...shown.items.flatMap(({ does }) => does.map((each) => each.text)),
  ].join("\n");
  assert.match(
    text,
    /sh\u0456p\.md is not what its name suggests: it looks like "[^"]*ship\.md", with U\+0456/,
  );
  assert.match(text, /\.harness\/\u0441onfig\.json is not \.harness\/config\.json, and is ignored/);
  assert.match(text, /\.Harness is not \.harness, and is ignored/);
  assert.doesNotMatch(text, /commands\/ship\.md is not/, "the twin");
});
