import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, readdir, stat } from "node:fs/promises";
import test from "node:test";
import { bytesOfText } from "../../src/core/raw-data.ts";
import { listsOf } from "../fixtures/changes.ts";
import { skip } from "../fixtures/engine.ts";
import { type Attack, attacks, isThere } from "../fixtures/escape-cases.ts";
import { Room } from "../fixtures/escape.ts";

/** Hanging is for ever; a busy machine is only slow. */
const MS = 15_000;

/** Ends the case unless the work ends in time. */
async function inTime<T>(work: Promise<T>): Promise<T> {
  const late = new Promise<never>((_, reject) => setTimeout(() => reject(new Error("it hangs")), MS).unref());
  return Promise.race([work, late]);
}

const namesOnHost = async (folder: string): Promise<readonly string[]> =>
  (await readdir(folder, { encoding: "buffer" })).map((name) => name.toString("hex")).toSorted();

const odd: readonly Attack[] = [
  {
    name: "FIFOs, sockets and devices in place of files, for the file tools",
    run: `mkfifo config.json src.ts package.json; mkfifo .bashrc .claude; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'; ln -s src.ts link.ts`,
    denied: async (room) => {
      const box = await room.box();
      for (const name of [
        "config.json",
        "src.ts",
        "link.ts",
        "sock",
        "/dev/zero",
        "/dev/tty",
        "/dev/stdin",
      ]) {
        assert.notEqual((await inTime(box.read(name))).kind, "ok", name);
        assert.notEqual((await inTime(box.write(name, Buffer.from("x")))).kind, "ok", name);
      }
      const listed = await inTime(box.list("."));
      assert.ok(listed.kind === "ok");
      assert.equal(listed.value.find(({ name }) => name === "src.ts")?.kind, "odd");
      assert.ok((await inTime(listsOf(box.changes()))).odd.includes("config.json"));
      for (const name of [".bashrc", ".claude"]) assert.equal(await isThere(room.at(name)), false, name);
      await inTime(room.leave());
      assert.equal((await inTime(room.exec("true"))).code, 0);
      // It covers them: taken away from outside, they would take its mounts along.
      await room.leave();
    },
    twin: "echo x > config.json && test -s config.json",
    allowed: async (room) => assert.equal((await (await room.box()).read("config.json")).kind, "ok"),
  },
  {
    name: "names with line ends, tabs, escapes, options and bytes that are not UTF-8",
    run: String.raw`touch "$(printf 'col\tumn')" "$(printf 'red\033[31mname')" "$(printf 'two\nlines')" -- --version '#x' '{y}' -rf $'bad\xff\xfename' $'\xc2\x9b' $'half\xe2\x82' ' ' $'\x7f'`,
    denied: async (room) => {
      const box = await room.box();
      const listed = await box.list(".");
      assert.ok(listed.kind === "ok");
      const names = listed.value.map(({ name }) => name);
      assert.deepEqual(
        names.map((name) => bytesOfText(name).toString("hex")).toSorted(),
        await namesOnHost(room.W),
      );
      const { added } = await listsOf(box.changes());
      assert.deepEqual(JSON.parse(JSON.stringify(added)), added);
      assert.equal(added.length, 12);
      for (const name of added) assert.equal((await box.read(name)).kind, "ok", JSON.stringify(name));
      assert.equal((await room.exec("ls -A | wc -l")).code, 0);
    },
    twin: String.raw`touch a $'b\nc' && rm -- a $'b\nc'`,
  },
  {
    name: "a planted name that would run something when it is restored",
    run: `touch ".aider'; touch made; '" '.aider$(touch made)' '.aider\`touch made\`' $'.aider\\ntouch made\\n' '.aider -rf' $'.aider\\xff\\ntouch made'`,
    denied: async (room, { result }) => {
      const moved = result?.quarantined ?? [];
      assert.equal(moved.length, 6);
      const cwd = `${room.root}/state`;
      for (const { from, takeBack } of moved) {
        execFileSync("bash", ["-c", takeBack], { cwd });
        assert.ok(
          (await readdir(room.W, { encoding: "buffer" })).some((name) =>
            bytesOfText(from).subarray(-name.length).equals(name),
          ),
        );
      }
      assert.equal(await isThere(`${cwd}/made`), false);
    },
    twin: "touch 'aider$(touch made)'",
  },
  {
    name: "the longest names, and paths deeper than allowed",
    run: `python3 - <<'PY'
import os
name = "x" * 250
for _ in range(40):
    os.mkdir(name); os.chdir(name)
os.mkdir(".git"); open(".git/config", "w").write("x")
PY
touch $(head -c 255 /dev/zero | tr '\\0' n)`,
    denied: async (room) => {
      const box = await room.box();
      assert.ok((await inTime(box.list("."))).kind === "ok");
      await inTime(listsOf(box.changes()));
      await inTime(room.leave());
    },
    twin: "mkdir -p a/b/c/d/e/f",
  },
  {
    name: "a huge sparse file, a growing file, and a folder with many names, for the tools",
    run: "truncate -s 3G big; seq -f 'many/%g' 12000 > /tmp/l; mkdir many; xargs touch < /tmp/l",
    denied: async (room) => {
      const box = await room.box();
      const read = await inTime(box.read("big", { offset: 2 ** 31, limit: 1000 }));
      assert.ok(read.kind === "ok" && read.value.content.length === 1000 && read.value.size === 3 * 2 ** 30);
      const before = process.memoryUsage().rss;
      const whole = await inTime(box.read("big", { offset: 0, limit: 2 ** 24 }));
      assert.ok(whole.kind !== "ok" || whole.value.content.length <= 2 ** 24);
      const listed = await inTime(box.list("many"));
      assert.ok(listed.kind === "ok" && listed.value.length <= 10_000);
      assert.ok(process.memoryUsage().rss - before < 300 * 2 ** 20);
      assert.ok((await stat(room.at("big"))).blocks < 100);
    },
    twin: "truncate -s 1M big && test -s big",
  },
];

attacks(odd);

test("starting over a workspace full of odd files ends in time, with valid JSON", { skip }, async () => {
  await using room = await Room.make(async ({ at }) => {
    execFileSync("mkfifo", [at("config.json"), at("Makefile"), at(".gitattributes")]);
    await mkdir(Buffer.from(`${at("odd")}\xff\n\x1b[31m`, "latin1"));
  });
  const command = String.raw`touch $'made\xff' $'esc\e]2;x\a'`;
  const { code, stdout } = await inTime(
    room.harness(["sandbox", "exec", "--json", "--", "bash", "-c", command]),
  );
  const answer = JSON.parse(stdout) as { readonly changes: { readonly added: readonly string[] } };
  assert.equal(code, 0);
  assert.deepEqual(answer.changes.added.map((name) => bytesOfText(name).toString("latin1")).toSorted(), [
    "esc\x1b]2;x\x07",
    "made\xff",
  ]);
  await room.intact();
});
