import assert from "node:assert/strict";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import test from "node:test";
import { noGit } from "../boxes/workspace/repository.ts";
import { skip } from "../fixtures/engine.ts";
import { type Attack, attacks, isThere, never, noToken } from "../fixtures/escape-cases.ts";
import { Room } from "../fixtures/escape.ts";
import type { Ran } from "../fixtures/escape.ts";

const text = (content: Uint8Array): string => Buffer.from(content).toString();

/** What the file tools give for these paths, as one text. */
async function readAll(room: Room, paths: readonly string[]): Promise<Ran> {
  const box = await room.box();
  const told: string[] = [];
  for (const path of paths) {
    const read = await box.read(path, { offset: 0, limit: 100_000 });
    told.push(
      read.kind === "ok" ? text(read.value.content) : read.code,
      JSON.stringify(await box.list(path)),
    );
  }
  return { code: 0, all: told.join("\n") };
}

async function writeAll(room: Room, paths: readonly string[]): Promise<void> {
  const box = await room.box();
  for (const path of paths) await box.write(path, Buffer.from("written through\n"));
}

const rename2 = (from: string, to: string, flags: number): string =>
  `python3 -c 'import ctypes; ctypes.CDLL(None).syscall(316, -100, b"{W}/${from}", -100, b"{W}/${to}", ${flags})'`;

const LINKS: readonly Attack[] = [
  {
    name: "the read tool through links",
    run: "ln -s {CAN}/secret notes.txt; mkdir -p docs; ln -s {CAN} docs/more; ln -s /proc/1/root{CAN}/secret deep; ln -s ../can/secret up; cat notes.txt docs/more/secret deep up",
    denied: async (room, ran) => {
      noToken(room, ran);
      noToken(room, await readAll(room, ["notes.txt", "docs/more/secret", "docs/more", "deep", "up"]));
    },
    twin: "ln -s README.md notes.txt",
    allowed: async (room) => {
      const read = await (await room.box()).read("notes.txt");
      assert.equal(read.kind === "ok" && text(read.value.content), "readme\n");
    },
    control: true,
  },
  {
    name: "the write tool through links",
    run: "ln -s {CAN}/note CHANGELOG.md; ln -s {CAN}/fresh TODO.md; ln -s {CAN} out; ln -s ../../can/x a; echo x > CHANGELOG.md; echo x > TODO.md; echo x > out/new",
    denied: (room) => writeAll(room, ["CHANGELOG.md", "TODO.md", "out/new", "a", "out/deep/er/new"]),
    twin: "touch real && ln -s real CHANGELOG.md",
    allowed: async (room) => {
      await writeAll(room, ["CHANGELOG.md"]);
      assert.equal(await readFile(room.at("real"), "utf8"), "written through\n");
    },
    control: true,
  },
  {
    name: "the write tool on protected paths, directly and through links",
    run: "ln -s .vscode/tasks.json t; ln -s sub/.git g; ln -s .git/hooks h; echo x > t; echo x > g/config; echo x > h/pre-push",
    denied: (room) =>
      writeAll(room, ["t", "g/config", "h/pre-push", ".envrc", "sub/.vscode/tasks.json", ".git/config"]),
    twin: "mkdir -p x/y",
    allowed: async (room) => {
      await writeAll(room, ["x/y/z/new"]);
      assert.ok(await isThere(room.at("x/y/z/new")));
    },
    control: true,
  },
  {
    name: "the read tool on the box's own processes and devices",
    run: "ln -s /proc/1/environ env; ln -s /dev/zero zero; ln -s /proc/1/mem mem; ln -s /dev/stdin in; ln -s loop loop",
    denied: async (room) => {
      const seen = await readAll(room, [
        "env",
        "/proc/1/environ",
        "zero",
        "mem",
        "in",
        "loop",
        "/proc/self/maps",
      ]);
      never(/HOME=|\0|r-xp/)(room, seen);
    },
    twin: "cp README.md other",
    allowed: async (room) => assert.equal((await (await room.box()).read("other")).kind, "ok"),
  },
  {
    name: "a second name for a protected path, to write through",
    run: "ln .vscode/tasks.json t; ln .git/config c; ln -P .envrc e; ln {CAN}/note n; for f in t c e n; do echo x >> $f; done; cp -l .envrc e2; echo x >> e2",
    twin: "ln README.md second && cmp README.md second",
    control: true,
  },
  {
    name: "an open descriptor of a protected file, reopened for writing",
    run: 'exec 3<.envrc 4<.vscode; echo x > /proc/self/fd/3; echo x > /proc/self/fd/4/tasks.json; echo x > /dev/fd/3; truncate -s 0 /proc/$$/fd/3; python3 -c \'import mmap,os; f=os.open(".envrc",os.O_RDWR); mmap.mmap(f,4)[0:1]=b"x"\'',
    twin: "echo y > open; exec 3<open; echo x > /proc/self/fd/3; grep -q x open",
    control: true,
  },
  {
    name: "every spelling of a protected path, and every way to change it",
    run: "for f in .envrc ./.vscode/../.envrc {W}//.envrc sub/../.mcp.json /proc/self/cwd/.envrc; do echo x >> $f; : > $f; truncate -s0 $f; chmod 777 $f; rm -f $f; mv $f gone; cp README.md $f; sed -i s/o/x/ $f; ln -sf README.md $f; done; rm -rf .vscode .git sub; chmod -R 777 .harness",
    twin: "echo x > plain; sed -i s/x/y/ plain; chmod 600 plain; mv plain other && rm other",
    control: true,
  },
  {
    name: "a parent folder of a protected path, moved away and recreated",
    run: "mv sub moved; mkdir -p sub/.git/hooks && echo x > sub/.git/hooks/pre-commit; rm -rf sub; mv .git .g; git init -q; mv .vscode v",
    denied: async (room) => assert.equal(await isThere(room.at("moved")), false),
    twin: "mkdir -p free/below && mv free moved && rm -r moved",
    control: true,
  },
  {
    name: "an exchange of two names (renameat2)",
    run: `mkdir -p fake/hooks; ${rename2(".git", "fake", 2)}; ${rename2("fake", "sub", 2)}; ${rename2("fake", ".vscode", 2)}; echo y > e; ${rename2("e", ".envrc", 2)}`,
    twin: `mkdir one; touch two; ${rename2("one", "two", 2)}; test -d two`,
    control: true,
  },
  {
    name: "names that another file system treats as protected ones",
    run: "mkdir -p .GIT/hooks .Git .HARNESS .VSCode .git.; echo x > .ENVRC; touch .Mcp.Json",
    denied: async (room) => {
      for (const name of [".GIT", ".Git", ".HARNESS", ".VSCode", ".git.", ".ENVRC", ".Mcp.Json"])
        assert.equal(await isThere(room.at(name)), false, name);
    },
    twin: "mkdir git && touch envrc gitignore .gitkeep",
    allowed: async (room) => assert.ok(await isThere(room.at(".gitkeep"))),
    control: true,
  },
  {
    name: "a protected name created as a link that leads out",
    run: "ln -s {CAN} .claude; ln -s {CAN}/note .mise.toml; ln -s ../can .idea",
    denied: async (room) => {
      for (const name of [".claude", ".mise.toml", ".idea"])
        assert.equal(await isThere(room.at(name)), false, name);
    },
    twin: "ln -s {CAN} claude && test -L claude",
    control: true,
  },
];

const TURNS = 150;

/** Two names that change places all the time: a folder, and a link to somewhere else. */
const swapping = (target: string): string =>
  `mkdir -p real; echo mine > real/note; echo mine > real/tasks.json; cp -r real d; ln -sfn ${target} l; python3 -c '
import ctypes, time
libc, until = ctypes.CDLL(None), time.time() + 8
while time.time() < until: libc.syscall(316, -100, b"d", -100, b"l", 2)'`;

for (const target of ["{W}/.vscode", "{CAN}"])
  test(
    `a race of the file tools against a folder that turns into a link to ${target}`,
    { skip },
    async () => {
      await using room = await Room.make();
      const box = await room.box();
      const words = ["bash", "-c", room.filled(swapping(target))];
      const job = box.start({ words, timeoutMs: 10_000, keep: { head: 1000, tail: 0 } });
      while (!(await isThere(room.at("l")))) await new Promise((later) => setTimeout(later, 10));
      const seen = { ok: 0, other: 0 };
      for (let turn = 0; turn < TURNS; turn++) {
        const wrote = await box.write("d/tasks.json", Buffer.from("changed\n"));
        const read = await box.read("d/secret");
        noToken(room, { code: 0, all: read.kind === "ok" ? text(read.value.content) : "" });
        seen[wrote.kind === "ok" ? "ok" : "other"]++;
      }
      job.kill();
      await job.result;
      assert.ok(seen.ok > 0 && seen.other > 0, `no race was run: ${JSON.stringify(seen)}`);
      await room.intact();
    },
  );

test(
  "a watched hooks folder is never moved out of a link's target, however fast it turns into a link",
  { skip: skip || noGit },
  async () => {
    await using room = await Room.make(async (made) => {
      made.hostGit("config", "core.hooksPath", "tools/hooks");
      await mkdir(`${made.CAN}/hooks`);
      await writeFile(`${made.CAN}/hooks/keep`, "kept\n");
    });
    await room.exec("ln -s {CAN} tools").catch(() => undefined);
    await room.intact();
    await room.exec("rm -f tools; mkdir -p tools; ln -sfn {CAN} l").catch(() => undefined);
    const turning = `cd {W}; while :; do ${rename2("tools", "l", 2)}; mkdir -p tools/hooks l/hooks; done 2>/dev/null`;
    const job = (await room.box()).start({
      words: ["bash", "-c", room.filled(turning)],
      timeoutMs: 10_000,
      keep: { head: 100, tail: 0 },
    });
    for (let turn = 0; turn < 25; turn++) await room.exec("sleep 0.02").catch(() => undefined);
    job.kill();
    await job.result.catch(() => undefined);
    await room.leave().catch(() => undefined);
    await room.intact();
    await room.tidy();
    assert.equal((await room.exec("mkdir tools && touch tools/x")).code, 0);
  },
);

test("a protected file that the host replaced cannot be written by the box", { skip }, async () => {
  await using room = await Room.make();
  assert.equal((await room.exec("test -s .envrc")).code, 0);
  await writeFile(room.at("fresh"), "of the host\n");
  await rename(room.at("fresh"), room.at(".envrc"));
  room.own();
  await room.remember();
  await room.exec("echo x >> .envrc; rm -f .envrc").catch(() => undefined);
  await room.intact();
  await room.leave().catch(() => undefined);
  assert.notEqual((await room.exec("echo x >> .envrc")).code, 0);
  assert.equal((await room.exec("grep -q host .envrc && touch made")).code, 0);
  await room.intact();
});

attacks(LINKS);
