import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, symlink } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import manifest from "../../package.json" with { type: "json" };
import { scratch } from "../fixtures/scratch.ts";
import { fakeNode, globalInstall, launch, packagedNode, packageWith, ROOT, said } from "./package.ts";

assert.ok(existsSync(path.join(ROOT, "dist/main.cjs")), "not built, so not tested: npm run build");

const NODE = { HARNESS_NODE: process.execPath };
const SYSTEM = { ...NODE, PATH: "/usr/bin:/bin" };
const SHOW = "process.stdout.write(JSON.stringify(process.argv.slice(2)));";
const VERSION = `harness ${manifest.version}\n`;

test("--version prints the version", async () => {
  const ended = await launch(path.join(ROOT, "bin/harness"), ["--version"], { env: SYSTEM });
  assert.deepEqual(said(ended), [0, VERSION, ""]);
});

const LINKS: Readonly<Record<string, readonly (readonly [link: string, to: string])[]>> = {
  "an absolute link": [["link", "ABSOLUTE"]],
  "a relative link": [["deep/er/link", "../../package/bin/harness"]],
  "a relative link from the folder above": [["link", "package/bin/harness"]],
  "a relative link to a relative link": [
    ["deep/inner", "../package/bin/harness"],
    ["other/link", "../deep/inner"],
  ],
  "a relative link to an absolute link": [
    ["inner", "ABSOLUTE"],
    ["other/link", "../inner"],
  ],
  "a link in a folder with a blank in its name": [["my programs/link", "../package/bin/harness"]],
  "a link to the folder": [["linked", "package/bin"]],
};

for (const [name, links] of Object.entries(LINKS))
  test(`it starts through ${name}`, async () => {
    await using place = await packageWith(SHOW);
    for (const [link, to] of links) {
      await mkdir(path.dirname(place.at(link)), { recursive: true });
      await symlink(to === "ABSOLUTE" ? place.at("package/bin/harness") : to, place.at(link));
    }
    const last = links.at(-1)?.[0] ?? "";
    const program = last === "linked" ? "linked/harness" : last;
    assert.deepEqual(said(await launch(place.at(program), ["hi"], { env: SYSTEM })), [0, '["hi"]', ""]);
  });

for (const shell of ["/bin/sh", "/bin/dash", "/bin/bash"])
  test(
    `${shell} runs it by its bare name`,
    { skip: !existsSync(shell) && `${shell} is not here` },
    async () => {
      await using place = await packageWith(SHOW);
      const ended = await launch(shell, ["harness", "hi"], { env: SYSTEM, cwd: place.at("package/bin") });
      assert.deepEqual(said(ended), [0, '["hi"]', ""]);
    },
  );

test("a relative link is followed when it is run by its bare name", async () => {
  await using place = await packageWith(SHOW);
  await symlink("package/bin/harness", place.at("harness"));
  const ended = await launch("/bin/sh", ["harness", "hi"], { env: SYSTEM, cwd: place.path });
  assert.deepEqual(said(ended), [0, '["hi"]', ""]);
});

for (const modules of ["prefix/lib/node_modules/harness/node_modules", "prefix/lib/node_modules"])
  test(`after a global install it runs on its own Node, from ${modules}`, async () => {
    await using place = await scratch();
    const program = await globalInstall(place, modules);
    const env = { PATH: "/usr/bin:/bin", HOME: place.at("home"), HARNESS_PIDS: "64" };
    assert.deepEqual(said(await launch(program, ["--version"], { env })), [0, VERSION, ""]);
    const got = await launch(program, ["config", "get", "pids", "--json"], { env, cwd: place.path });
    assert.deepEqual(said(got), [0, '{"key":"pids","value":64,"origin":"HARNESS_PIDS"}\n', ""]);
  });

test("the packaged Node takes precedence over the one on PATH, and HARNESS_NODE over both", async () => {
  await using place = await packageWith("");
  await fakeNode(place, packagedNode("package/node_modules"), "v24.0.0");
  await fakeNode(place, "path/node", "v26.0.0");
  await fakeNode(place, "named/node", "v25.0.0");
  const program = place.at("package/bin/harness");
  const env = { PATH: place.at("path") };
  const packaged = await launch(program, [], { env });
  const named = await launch(program, [], { env: { ...env, HARNESS_NODE: place.at("named/node") } });
  const empty = await launch(program, [], { env: { ...env, HARNESS_NODE: "" } });
  assert.deepEqual([packaged, named, empty].map(said), [
    [0, `this is ${packagedNode("package/node_modules")}\n`, ""],
    [0, "this is named/node\n", ""],
    [0, `this is ${packagedNode("package/node_modules")}\n`, ""],
  ]);
});

for (const version of ["v20.0.0", "v9.99.0", "v23.11.1", "", "nonsense", "v"])
  test(`HARNESS_NODE that says ${JSON.stringify(version)} is refused by name`, async () => {
    await using place = await packageWith(SHOW);
    const node = await fakeNode(place, "old/node", version);
    const ended = await launch(place.at("package/bin/harness"), [], { env: { HARNESS_NODE: node } });
    const named = `HARNESS_NODE is ${node} (${version === "" ? "does not run" : version})`;
    const message = `harness: ${named}, but Node 24 or later is needed. Type: unset HARNESS_NODE\n`;
    assert.deepEqual(said(ended), [2, "", message]);
  });

for (const version of ["v24.0.0", "v24.0.0-rc.1", "v100.1.0"])
  test(`HARNESS_NODE that says ${version} is used`, async () => {
    await using place = await packageWith(SHOW);
    const node = await fakeNode(place, "good/node", version);
    const ended = await launch(place.at("package/bin/harness"), [], { env: { HARNESS_NODE: node } });
    assert.deepEqual(said(ended), [0, "this is good/node\n", ""]);
  });

test("a HARNESS_NODE that does not exist is refused by name", async () => {
  await using place = await packageWith(SHOW);
  const node = place.at("gone/node");
  const ended = await launch(place.at("package/bin/harness"), [], { env: { HARNESS_NODE: node } });
  const message = `harness: HARNESS_NODE is ${node} (does not run), but Node 24 or later is needed. Type: unset HARNESS_NODE\n`;
  assert.deepEqual(said(ended), [2, "", message]);
});

test("the first Node on PATH that is new enough is used; folders, broken and old ones are skipped", async () => {
  await using place = await packageWith(SHOW);
  await mkdir(place.at("folder/node"), { recursive: true });
  await fakeNode(place, "old one/node", "v20.0.0");
  await place.write("broken/node", "#!/bin/sh\nexit 1\n", 0o755);
  await place.write("plain/node", "no program", 0o644);
  await fakeNode(place, "good/node", "v24.0.0");
  await fakeNode(place, "better/node", "v26.0.0");
  const PATH = ["gone", "folder", "old one", "broken", "plain", "good", "better"]
    .map((name) => place.at(name))
    .join(":");
  const ended = await launch(place.at("package/bin/harness"), [], { env: { PATH } });
  assert.deepEqual(said(ended), [0, "this is good/node\n", ""]);
});

test("a Node in the current folder is skipped, whatever PATH says", async () => {
  await using place = await packageWith(SHOW);
  for (const name of ["node", "bin/node", "good/node"]) await fakeNode(place, name, "v24.0.0");
  const PATH = `:.:bin:./bin:${place.at("good")}:`;
  const ended = await launch(place.at("package/bin/harness"), [], { env: { PATH }, cwd: place.path });
  assert.deepEqual(said(ended), [0, "this is good/node\n", ""]);
});

test("with only old Nodes on PATH it ends with 2 and lists them", async () => {
  await using place = await packageWith(SHOW);
  await fakeNode(place, "old one/node", "v20.0.0");
  await fakeNode(place, "older/node", "v18.1.2");
  const PATH = `${place.at("old one")}:${place.at("older")}`;
  const ended = await launch(place.at("package/bin/harness"), [], { env: { PATH } });
  const seen = `${place.at("old one/node")} v20.0.0, ${place.at("older/node")} v18.1.2`;
  assert.deepEqual(said(ended), [
    2,
    "",
    `harness: Node 24 or later is needed, found ${seen}. Type: npm ci   (it brings one), or set HARNESS_NODE to one\n`,
  ]);
});

test("without any Node it ends with 2 and reports it", async () => {
  await using place = await packageWith(SHOW);
  const ended = await launch(place.at("package/bin/harness"), [], { env: { PATH: place.path } });
  assert.deepEqual(
    [ended.code, ended.stderr.startsWith("harness: Node 24 or later is needed, found none.")],
    [2, true],
  );
});

test("before the first build it ends with 2 and the next step", async () => {
  await using place = await packageWith(undefined);
  const ended = await launch(place.at("package/bin/harness"), ["--version"], { env: SYSTEM });
  const message =
    "harness: this checkout is not built yet. Type: ./start.sh   (or: npm ci && npm run build)\n";
  assert.deepEqual(said(ended), [2, "", message]);
});

const AWKWARD = [
  "two words",
  " ",
  "",
  "line\nline\n",
  "tab\t",
  `"'\`$HOME$(id)\\`,
  "*",
  "-",
  "--",
  "-e",
  "--eval=1",
  "--help",
  "é😀",
  "%s%n",
  "last\n",
  "",
];

for (const [name, node] of [
  ["HARNESS_NODE", NODE],
  ["PATH", { PATH: path.dirname(process.execPath) }],
] as const)
  test(`arguments arrive unchanged on the Node of ${name}`, async () => {
    await using place = await packageWith(SHOW);
    const { code, stdout } = await launch(place.at("package/bin/harness"), AWKWARD, {
      env: { ...node, IFS: "e" },
    });
    assert.deepEqual([code, JSON.parse(stdout)], [0, AWKWARD]);
  });

test("a leading dash is passed to the program, not to Node", async () => {
  await using place = await packageWith(SHOW);
  const ended = await launch(place.at("package/bin/harness"), ["-e", "process.exit(9)"], { env: SYSTEM });
  assert.deepEqual(said(ended), [0, '["-e","process.exit(9)"]', ""]);
});

test("the exit code is the program's, and the process is the program itself", async () => {
  await using place = await packageWith("process.stdout.write(String(process.pid)); process.exitCode = 7;");
  const { code, stdout, pid } = await launch(place.at("package/bin/harness"), [], { env: SYSTEM });
  assert.deepEqual([code, Number(stdout)], [7, pid]);
});

test("a signal reaches the program, which may handle it or die of it", async () => {
  await using deaf = await packageWith("process.stdout.write('up'); setInterval(() => {}, 1000);");
  const killed = await launch(deaf.at("package/bin/harness"), [], {
    env: SYSTEM,
    onStdout: (kill) => kill("SIGTERM"),
  });
  assert.deepEqual([killed.code, killed.signal], [null, "SIGTERM"]);
  const handler =
    "process.on('SIGINT', () => process.exit(130)); process.stdout.write('up'); setInterval(() => {}, 1000);";
  await using polite = await packageWith(handler);
  const ended = await launch(polite.at("package/bin/harness"), [], {
    env: SYSTEM,
    onStdout: (kill) => kill("SIGINT"),
  });
  assert.deepEqual([ended.code, ended.signal], [130, null]);
});
