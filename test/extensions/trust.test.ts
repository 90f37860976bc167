import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, cp, mkdir, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { broughtOf, type Kind, lookAlikesIn, projectOf } from "../../src/extensions/brought.ts";
import {
  forgetTrust,
  recordDeclined,
  recordTrusted,
  type TrustOwner,
  trustedFile,
  trustOf,
} from "../../src/extensions/trust.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

const SETTINGS = "w/.harness/config.json";
const ENVIRONMENT = "w/.harness/env.json";

const ownerIn = (place: Scratch): TrustOwner => ({
  stateDir: place.at("state"),
  home: place.at("home"),
  uid: process.getuid?.() ?? 0,
});

const stateOf = async (place: Scratch, kind: Kind = "settings", workspace = "w"): Promise<string> =>
  (await trustedFile(ownerIn(place), place.at(workspace), kind)).state;

/** Says yes to everything that is there. */
async function trustAll(place: Scratch, workspace = "w"): Promise<void> {
  const owner = ownerIn(place);
  const seen = await trustOf(owner, place.at(workspace));
  assert.ok(seen.place);
  const shown = seen.items.map(({ brought }) => brought);
  await recordTrusted(owner, seen.place, shown);
}

test("a file is trusted once its exact bytes are recorded, and no longer after a change", async () => {
  await using place = await scratch({ [SETTINGS]: "{}", [ENVIRONMENT]: "{}" });
  assert.equal(await stateOf(place), "untrusted");
  await trustAll(place);
  assert.deepEqual([await stateOf(place), await stateOf(place, "environment")], ["trusted", "trusted"]);
  await place.write(SETTINGS, "{} ");
  assert.deepEqual([await stateOf(place), await stateOf(place, "environment")], ["untrusted", "trusted"]);
  const { items } = await trustOf(ownerIn(place), place.at("w"));
  assert.deepEqual(
    items.map(({ standing, before }) => [standing, before[0]?.text]),
    [
      ["changed", "{}"],
      ["trusted", "{}"],
    ],
  );
  await place.write(SETTINGS, "{}");
  assert.equal(await stateOf(place), "trusted");
});

test("what was shown is recorded, not what the file contains by then", async () => {
  await using place = await scratch({ [SETTINGS]: '{"pids": 20}' });
  const owner = ownerIn(place);
  const seen = await trustOf(owner, place.at("w"));
  await place.write(SETTINGS, '{"mode": "danger-full-access"}');
  assert.ok(seen.place);
  await recordTrusted(
    owner,
    seen.place,
    seen.items.map(({ brought }) => brought),
  );
  const after = await trustedFile(owner, place.at("w"), "settings");
  assert.equal(after.state === "untrusted" && after.why, "it has changed since it was trusted");
});

test("a trusted file is returned with its text, and a missing one is absent", async () => {
  await using place = await scratch({ [SETTINGS]: "{}" });
  await trustAll(place);
  const file = await trustedFile(ownerIn(place), place.at("w"), "settings");
  assert.deepEqual(file.state === "trusted" && [file.file, file.text], [place.at(SETTINGS), "{}"]);
  assert.equal(await stateOf(place, "rules"), "absent");
  assert.equal(await stateOf(place, "settings", "nowhere"), "absent");
});

test("a copied folder, a moved one and a new one at the same path are different projects", async () => {
  await using place = await scratch({ [SETTINGS]: "{}" });
  await trustAll(place);
  await cp(place.at("w"), place.at("copy"), { recursive: true });
  assert.equal(await stateOf(place, "settings", "copy"), "untrusted");
  await rename(place.at("w"), place.at("moved"));
  await rename(place.at("copy"), place.at("w"));
  assert.deepEqual(
    [await stateOf(place), await stateOf(place, "settings", "moved")],
    ["untrusted", "untrusted"],
  );
  await rm(place.at("w"), { recursive: true });
  await rename(place.at("moved"), place.at("w"));
  assert.equal(await stateOf(place), "trusted");
});

test("a link to the workspace is the workspace", async () => {
  await using place = await scratch({ [SETTINGS]: "{}" });
  await symlink(place.at("w"), place.at("link"));
  await trustAll(place, "link");
  assert.deepEqual([await stateOf(place), await stateOf(place, "settings", "link")], ["trusted", "trusted"]);
});

test("a sub-folder uses the nearest .harness in its repository, and none from above or from the home", async () => {
  await using place = await scratch({
    ".harness/config.json": "{}",
    "home/.harness/config.json": "{}",
    "home/loose/a.txt": "",
    "w/.git/HEAD": "",
    "w/packages/a/src/x.txt": "",
    "w/packages/b/.harness/config.json": "{}",
    "w/packages/c/.devcontainer/devcontainer.json": "{}",
    [SETTINGS]: "{}",
  });
  const top = async (workspace: string) => {
    const file = await trustedFile(ownerIn(place), place.at(workspace), "settings");
    return file.state === "absent" ? "absent" : path.relative(place.path, file.file);
  };
  assert.deepEqual(await Promise.all(["w/packages/a/src", "w/packages/b", "w/packages/c"].map(top)), [
    SETTINGS,
    "w/packages/b/.harness/config.json",
    SETTINGS,
  ]);
  assert.deepEqual(await Promise.all(["home/loose", "home"].map(top)), ["absent", "absent"]);
  await mkdir(place.at("home/.git"));
  assert.equal(await top("home/loose"), "absent");
});

/** What stands in place of the settings, and what is said of it. */
const ODD: readonly (readonly [said: string, make: (place: Scratch) => Promise<unknown>])[] = [
  ["it is a link", (place) => symlink(place.at("elsewhere/config.json"), place.at(SETTINGS))],
  ["it is a link", (place) => symlink("config.json", place.at(SETTINGS))],
  ["it is a folder", (place) => mkdir(place.at(SETTINGS))],
  [
    "it is a pipe or a device, not a file",
    (place) => Promise.resolve(execFileSync("mkfifo", [place.at(SETTINGS)])),
  ],
  [
    "it is 1.0 MiB, larger than the limit of 1.0 MiB",
    (place) => place.write(SETTINGS, " ".repeat(2 ** 20 + 1)),
  ],
  ["it is not UTF-8", (place) => writeFile(place.at(SETTINGS), Buffer.from([0x7b, 0xff, 0x7d]))],
];

test("links, pipes, folders, and binary or oversized files are reported and never trusted", async () => {
  for (const [said, make] of ODD) {
    await using place = await scratch({ "elsewhere/config.json": "{}", "w/.harness/keep": "" });
    await make(place);
    const file = await trustedFile(ownerIn(place), place.at("w"), "settings");
    assert.deepEqual(file.state === "untrusted" && [file.text, file.why.replace(/1\.?0? MiB/g, "1.0 MiB")], [
      null,
      said,
    ]);
    await trustAll(place);
    assert.equal(await stateOf(place), "untrusted");
  }
});

test("a .harness folder that is a link cannot be trusted", async () => {
  await using place = await scratch({ "elsewhere/config.json": "{}", "w/a.txt": "" });
  await symlink(place.at("elsewhere"), place.at("w/.harness"));
  await trustAll(place);
  const file = await trustedFile(ownerIn(place), place.at("w"), "settings");
  assert.equal(file.state === "untrusted" && file.why, "one of its parent folders is a link");
});

test("only the exact name is used: other cases and look-alikes are not read", async () => {
  for (const name of [
    ".Harness",
    ".HARNESS",
    ".har\u200Cness",
    ".harne\u017F\u017F",
    ".h\u0430rness",
    ".harness ",
  ]) {
    await using place = await scratch({ [`w/${name}/config.json`]: "{}" });
    const there = await trustedFile(ownerIn(place), place.at("w"), "settings");
    assert.notEqual(there.state, "trusted");
    if (there.state === "untrusted") assert.equal(there.why, "one of its parent folders is a link", name);
  }
});

test("the names of a large folder are compared one by one, whatever there is to resemble", async (context) => {
  const many = Array.from({ length: 50 }, (_, at) => [`w/f${at}`, ""] as const);
  await using place = await scratch({
    ...Object.fromEntries(many),
    "w/.H\u0430rness": "",
    "w/.git/HEAD": "",
  });
  const project = projectOf(place.at("w"), place.at("home"));
  assert.ok(project !== undefined);
  const looked = context.mock.method(String.prototype, "normalize");
  const found = await lookAlikesIn(project);
  const count = looked.mock.callCount();
  looked.mock.restore();
  assert.deepEqual(found, [".H\u0430rness is not .harness, and is ignored"]);
  assert.ok(count < 10 * many.length, `${count} looks`);
});

const DEVCONTAINER = "w/.devcontainer/devcontainer.json";

test("the Dockerfile named by a dev container is part of it", async () => {
  await using place = await scratch({
    [DEVCONTAINER]: '{ // ours\n "build": {"dockerfile": "../docker/Dockerfile"},}',
    "w/docker/Dockerfile": "FROM a\n",
  });
  await trustAll(place);
  const file = await trustedFile(ownerIn(place), place.at("w"), "devcontainer");
  assert.deepEqual(file.state === "trusted" && [...file.named].map(([name, { text }]) => [name, text]), [
    ["docker/Dockerfile", "FROM a\n"],
  ]);
  await place.write("w/docker/Dockerfile", "FROM b\n");
  assert.equal(await stateOf(place, "devcontainer"), "untrusted");
});

test("a dev container cannot name a file outside the project, not even through a link", async () => {
  for (const name of ["../../secret", "/etc/passwd", "../link", "../folder/secret", "../none"]) {
    await using place = await scratch({
      [DEVCONTAINER]: JSON.stringify({ build: { dockerfile: name } }),
      secret: "x",
      "folder/secret": "x",
    });
    await symlink(place.at("secret"), place.at("w/link"));
    await symlink(place.at("folder"), place.at("w/folder"));
    await trustAll(place);
    const file = await trustedFile(ownerIn(place), place.at("w"), "devcontainer");
    assert.deepEqual(file.state === "untrusted" && file.text, null, name);
  }
});

const HOOKS = "w/.harness/hooks.json";
const SERVERS = "w/.harness/mcp.json";
const OTHERS = {
  "w/.harness/a.sh": "a",
  "w/.harness/a~b": "a",
  "w/.harness/the hook.sh": "a",
  "w/.harness/prüfen.sh": "a",
  "w/.harness/sub/b.sh": "a",
  "w/.harness/skills/s/SKILL.md": "a",
};

for (const [what, command, names] of [
  ["a plain name", "sh .harness/a.sh && true", [".harness/a.sh"]],
  ["a name of other letters", ["sh", ".harness/prüfen.sh"], [".harness/prüfen.sh"]],
  ["a name with blanks in a list", ["sh", ".harness/the hook.sh"], [".harness/the hook.sh"]],
  ["a name with other signs in a list", ["sh", "./.harness/a~b"], [".harness/a~b"]],
  ["a text in a list", ["sh", "-ec", "sh .harness/a.sh x"], [".harness/a.sh"]],
  ["a file elsewhere", ["node", "guards/a.mjs"], []],
  ["a name with blanks in a text", "sh '.harness/the hook.sh'", "all"],
  ["a name that the shell puts together", "sh $PWD/.harness/a.sh", "all"],
  ["a name that the shell completes", "sh .harness/a*", "all"],
  ["a folder", "cd .harness && sh a.sh", "all"],
  ["a folder within", "ls .harness/sub", "all"],
  ["a detour", ["sh", "x/../.harness/a.sh"], "all"],
] as const)
  test(`files that a hook names by ${what} are trusted with it, and a change of them is noticed`, async () => {
    await using place = await scratch({ [HOOKS]: JSON.stringify([{ event: "Stop", command }]), ...OTHERS });
    await trustAll(place);
    const file = await trustedFile(ownerIn(place), place.at("w"), "hooks");
    const all = Object.keys(OTHERS).flatMap((name) => (name.includes("skills") ? [] : [name.slice(2)]));
    assert.deepEqual(
      file.state === "trusted" && [...file.named.keys()],
      names === "all" ? all.toSorted() : names,
    );
    for (const name of names === "all" ? all : names) {
      await place.write(`w/${name}`, "b");
      assert.equal(await stateOf(place, "hooks"), "untrusted", name);
      await place.write(`w/${name}`, "a");
    }
    assert.equal(await stateOf(place, "hooks"), "trusted");
  });

test("files of the project's own folder that a server is started with are trusted with it", async () => {
  const server = { command: "node", args: [".harness/a.sh"], env: { A: "x" } };
  await using place = await scratch({
    [SERVERS]: JSON.stringify({ mcpServers: { one: server, two: { command: ["tool", "docs"] } } }),
    ...OTHERS,
  });
  await trustAll(place);
  assert.equal(await stateOf(place, "mcp"), "trusted");
  await place.write("w/.harness/sub/b.sh", "b");
  assert.equal(await stateOf(place, "mcp"), "trusted");
  await place.write("w/.harness/a.sh", "b");
  assert.equal(await stateOf(place, "mcp"), "untrusted");
  await place.write(
    SERVERS,
    JSON.stringify({ mcpServers: { one: { ...server, args: ["b.sh"], cwd: ".harness/sub" } } }),
  );
  await trustAll(place);
  await place.write("w/.harness/sub/b.sh", "c");
  assert.equal(await stateOf(place, "mcp"), "untrusted");
});

test("of two files of one kind neither is used", async () => {
  await using place = await scratch({ [DEVCONTAINER]: "{}", "w/.devcontainer.json": "{}" });
  await trustAll(place);
  assert.equal(await stateOf(place, "devcontainer"), "untrusted");
});

const recordsOf = async (place: Scratch): Promise<readonly string[]> =>
  (await readdir(place.at("state/trust"))).filter((name) => name.endsWith(".json"));

test("a damaged, foreign or publicly writable record trusts nothing, is reported, and is renewed", async () => {
  const harms: readonly (readonly [RegExp, (file: string) => Promise<unknown>])[] = [
    [/it is damaged$/, (file) => writeFile(file, "{")],
    [/it is damaged$/, (file) => writeFile(file, "")],
    [/it is damaged$/, (file) => writeFile(file, '{"form":2}')],
    [/other users may write to it$/, (file) => chmod(file, 0o622)],
    [/it is not a file$/, async (file) => (await rm(file), await mkdir(file))],
  ];
  for (const [said, harm] of harms) {
    await using place = await scratch({ [SETTINGS]: "{}" });
    await trustAll(place);
    const [name = ""] = await recordsOf(place);
    await harm(place.at("state/trust", name));
    const file = await trustedFile(ownerIn(place), place.at("w"), "settings");
    assert.match(file.state === "untrusted" ? file.why : "", said);
    assert.match((await trustOf(ownerIn(place), place.at("w"))).damage ?? "", said);
    if (String(said).includes("not a file")) continue;
    await trustAll(place);
    assert.equal(await stateOf(place), "trusted");
  }
});

test("what one user trusts is not trusted for another", async () => {
  await using place = await scratch({ [SETTINGS]: "{}" });
  await trustAll(place);
  const other = { ...ownerIn(place), uid: ownerIn(place).uid + 1 };
  const file = await trustedFile(other, place.at("w"), "settings");
  assert.match(file.state === "untrusted" ? file.why : "", /it belongs to another user \(uid \d+\)$/);
});

test("a text inserted into the record later is not accepted for the hash beside it", async () => {
  await using place = await scratch({ [SETTINGS]: "{}" });
  await trustAll(place);
  const [name = ""] = await recordsOf(place);
  const file = `state/trust/${name}`;
  await place.write(file, (await place.read(file)).replace('"text": "{}"', '"text": "[]"'), 0o600);
  assert.equal(await stateOf(place), "untrusted");
});

test("a declined file stays declined until it changes, and a forgotten one is new", async () => {
  await using place = await scratch({ [SETTINGS]: "{}" });
  const owner = ownerIn(place);
  const seen = await trustOf(owner, place.at("w"));
  assert.ok(seen.place);
  await recordDeclined(
    owner,
    seen.place,
    seen.items.map(({ brought }) => brought),
  );
  const declined = async () => (await trustOf(owner, place.at("w"))).items.map((item) => item.declined);
  assert.deepEqual(await declined(), [true]);
  await place.write(SETTINGS, '{"pids": 20}');
  assert.deepEqual(await declined(), [false]);
  await trustAll(place);
  await forgetTrust(owner, seen.place);
  const { items } = await trustOf(owner, place.at("w"));
  assert.deepEqual(
    items.map(({ standing, before }) => [standing, before.length]),
    [["new", 0]],
  );
});

test("the hash covers everything that can be trusted, whatever is trusted already and wherever the project is", async () => {
  await using place = await scratch({ [SETTINGS]: "{}", "other/.harness/config.json": "{}" });
  const hash = async (workspace: string) => (await trustOf(ownerIn(place), place.at(workspace))).hash;
  const before = await hash("w");
  assert.match(before, /^[0-9a-f]{64}$/);
  await trustAll(place);
  assert.deepEqual([await hash("w"), await hash("other")], [before, before]);
  await place.write(ENVIRONMENT, "{}");
  assert.notEqual(await hash("w"), before);
});

test("several processes that record at the same time lose nothing", async () => {
  await using place = await scratch({
    [SETTINGS]: "{}",
    [ENVIRONMENT]: "{}",
    "w/.harness/policy.json": "{}",
  });
  const owner = ownerIn(place);
  const found = projectOf(place.at("w"), owner.home);
  assert.ok(found);
  const kinds = ["settings", "environment", "rules"] as const;
  const shown = await Promise.all(kinds.map((kind) => broughtOf(found, kind)));
  await Promise.all(
    shown.map((brought) => recordTrusted(owner, found, brought === undefined ? [] : [brought])),
  );
  assert.deepEqual(await Promise.all(kinds.map((kind) => stateOf(place, kind))), [
    "trusted",
    "trusted",
    "trusted",
  ]);
});
