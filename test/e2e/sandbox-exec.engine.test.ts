import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { engine } from "../fixtures/engine-api.ts";
import { skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/give-away.ts";
import { boxesOver } from "../fixtures/standing-boxes.ts";
import { answerOf, household, sandboxExec } from "./box-command.ts";

const sh = (line: string, ...words: readonly string[]): readonly string[] => [
  "--",
  "sh",
  "-c",
  line,
  "sh",
  ...words,
];

test("--json prints one object with the documented keys", { skip }, async () => {
  await using place = await household({ "old.txt": "a", "gone.txt": "b" });
  const line = "echo out; echo err >&2; echo b >> old.txt; rm gone.txt; mkdir new; echo x > new/file; exit 3";
  const ended = await sandboxExec(place, ["--json", ...sh(line)]);
  const { duration_ms, peak, ...rest } = answerOf(ended);
  assert.deepEqual(rest, {
    exit_code: 3,
    cause: "program",
    stdout: "out\n",
    stderr: "err\n",
    truncated: false,
    timed_out: false,
    killed: false,
    blocked_connections: [],
    changes: { added: ["new/file"], modified: ["old.txt"], deleted: ["gone.txt"] },
    quarantined: [],
    quarantined_total: 0,
    commits: [],
    commits_total: 0,
    staged: [],
  });
  assert.deepEqual(Object.keys(peak as object), ["memory_bytes", "pids"]);
  assert.ok(Number(duration_ms) > 0);
  assert.deepEqual([ended.code, ended.stdout.toString().split("\n").length], [3, 2]);
});

test("without --json the output is streamed, and the exit code is the command's own", { skip }, async () => {
  await using place = await household();
  const cases: readonly (readonly [readonly string[], number, string, RegExp])[] = [
    [["--", "echo", "--json", "-x"], 0, "--json -x\n", /^$/],
    [sh("echo out; echo err >&2; exit 7"), 7, "out\n", /^err\n$/],
    [["--timeout", "1", ...sh("sleep 30")], 124, "", /time .*\n {2}next: .*--timeout 30m/],
    [sh("kill -KILL $$"), 137, "", /^$/],
    [["--", "no-such-program"], 127, "", /^(?:note: .*\n)?harness: no-such-program: command not found\n/],
    [["--", "/etc/passwd"], 126, "", /could not be started/],
    [["--", "true", ...Array.from({ length: 11 }, () => "x".repeat(100_000))], 126, "", /too long/],
    [["--quiet", "--", "no-such-program"], 127, "", /^$/],
  ];
  for (const [words, code, stdout, stderr] of cases) {
    const ended = await sandboxExec(place, words);
    assert.deepEqual([ended.code, ended.stdout.toString()], [code, stdout], words.join(" ").slice(0, 80));
    assert.match(ended.stderr, stderr);
  }
});

test("a command's arguments arrive in order, including repeated ones", { skip }, async () => {
  await using place = await household();
  const words = ["b", "--", "a", "", "b", "--json", "", "--", "a"];
  const { stdout } = await sandboxExec(place, ["--", "printf", "[%s]", ...words]);
  assert.equal(stdout.toString(), words.map((word) => `[${word}]`).join(""));
});

test("an invalid command or setting ends with 2 before any box starts", { skip }, async () => {
  await using place = await household();
  for (const words of [
    [],
    ["--"],
    ["true"],
    ["true", "--", "true"],
    ["--mode", "none", "--", "true"],
    ["--memory", "lots", "--", "true"],
    ["--pids", "-1", "--", "true"],
    ["--cwd", place.at("no/such"), "--", "true"],
    ["--cwd", place.at("work/file"), "--", "true"],
  ]) {
    await place.write("work/file", "");
    const { code, stdout, stderr } = await sandboxExec(place, words);
    assert.deepEqual([code, stdout.toString()], [2, ""], words.join(" "));
    assert.match(stderr, /error: .*\n {2}next: /);
  }
});

test("without a box the exit code is 125: no engine, the root folder, a home", { skip }, async () => {
  await using place = await household();
  const engineless = { DOCKER_HOST: "tcp://127.0.0.1:1" };
  const dead = await sandboxExec(place, ["--", "true"], { env: engineless });
  assert.deepEqual([dead.code, dead.stdout.toString()], [125, ""]);
  assert.match(dead.stderr, /127\.0\.0\.1:1.*\n {2}next: /);
  for (const folder of ["/", place.path, "/etc", "/tmp"]) {
    const { code, stderr } = await sandboxExec(place, ["--cwd", folder, "--", "true"]);
    assert.equal(code, 125, folder);
    assert.match(stderr, /cannot be the workspace of a box/);
  }
  const told = await sandboxExec(place, ["--json", "--", "true"], { env: engineless });
  assert.equal(told.code, 6);
  const { error } = answerOf(told);
  assert.deepEqual(Object.keys(error as object), ["message", "remedy", "exit_code"]);
});

test(
  "piped data is the command's input, and an open pipe that it does not read delays nothing",
  { skip },
  async () => {
    await using place = await household();
    const binary = Buffer.from(Array.from({ length: 70_000 }, (_, index) => index & 0xff));
    const piped = await sandboxExec(place, ["--", "cat"], { input: binary });
    assert.ok(piped.stdout.equals(binary));
    const open = await sandboxExec(place, ["--", "echo", "done"], { silent: true });
    assert.deepEqual([open.code, open.stdout.toString()], [0, "done\n"]);
    const failed = await sandboxExec(place, ["--json", "--", "head", "-c1"], {
      input: Buffer.alloc(5_000_000, 65),
    });
    assert.deepEqual([failed.code, answerOf(failed)["stdout"]], [0, "A"]);
  },
);

test("a large output arrives complete, as bytes", { skip }, async () => {
  await using place = await household();
  const { stdout } = await sandboxExec(place, sh("head -c 20000000 /dev/zero | tr '\\0' '\\377'"));
  assert.equal(stdout.length, 20_000_000);
  assert.ok(stdout.every((byte) => byte === 255));
  const cut = answerOf(await sandboxExec(place, ["--json", ...sh("head -c 2000000 /dev/zero")]));
  assert.equal(cut["truncated"], true);
  assert.match(String(cut["stdout"]), /… 1475712 of 2000000 bytes left out …/);
});

test("a reader that closes ends the command, with the usual clean-up", { skip }, async () => {
  await using place = await household();
  const line = "mkdir .vscode; yes";
  const { code, stderr } = await sandboxExec(place, sh(line), { readsOnce: true });
  assert.equal(code, 0);
  assert.match(stderr, /^note: \S+\/\.vscode was made in the box and moved out of the workspace; .+\n$/);
  assert.deepEqual(await boxesOver(place.at("work")), []);
  assert.deepEqual(await readdir(place.at("work")), []);
});

test("Ctrl-C ends with 130, SIGTERM with 143, and no container is left", { skip }, async () => {
  await using place = await household();
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)
    for (const json of [[], ["--json"]]) {
      const words = [...json, ...sh("touch up; sleep 60")];
      const up = place.at("work/up");
      const ended = await sandboxExec(place, words, { whenMade: [up, (kill) => kill(signal)] });
      assert.equal(ended.code, code);
      if (json.length > 0) assert.ok("error" in answerOf(ended));
      else assert.match(ended.stderr, /interrupted/);
      assert.deepEqual(await boxesOver(place.at("work")), []);
      await rm(up);
    }
});

test("in read-only mode nothing in the workspace changes, and /tmp is writable", { skip }, async () => {
  await using place = await household({ "a.txt": "old" });
  const line = "echo x > /tmp/x && cat /tmp/x; echo new > a.txt";
  const { code, stdout, stderr } = await sandboxExec(place, ["--mode", "read-only", ...sh(line)]);
  assert.deepEqual([code === 0, stdout.toString()], [false, "x\n"]);
  assert.match(stderr, /Read-only file system/);
  assert.match(stderr, /blocked: .*a\.txt/);
  assert.equal(await place.read("work/a.txt"), "old");
  assert.equal((await sandboxExec(place, sh("echo new > a.txt"))).code, 0);
  assert.equal(await place.read("work/a.txt"), "new\n");
});

test("memory and process limits apply as requested, and reaching one is reported", { skip }, async () => {
  await using place = await household();
  const eat = ["--memory", "64m", "--json", "--", "perl", "-e", '$x = "x" x 500_000_000; print length $x'];
  const eaten = answerOf(await sandboxExec(place, eat));
  assert.deepEqual([eaten["cause"], eaten["exit_code"]], ["memory", 137]);
  assert.ok((eaten["peak"] as { memory_bytes: number }).memory_bytes <= 64 * 2 ** 20);
  const spawn = ["--pids", "20", "--json", ...sh("for _ in $(seq 60); do sleep 5 & done; wait")];
  assert.equal(answerOf(await sandboxExec(place, spawn))["cause"], "pids");
  const few = ["--pids", "20", "--json", ...sh("for _ in $(seq 5); do sleep 0.1 & done; wait")];
  assert.equal(answerOf(await sandboxExec(place, few))["cause"], null);
});

test(
  "the answer has the same cause as a run, even if only the program's output shows it",
  { skip },
  async () => {
    await using place = await household();
    const causeOf = async (line: string): Promise<unknown> =>
      answerOf(await sandboxExec(place, ["--json", ...sh(line)]))["cause"];
    assert.equal(await causeOf("head -c 2G /dev/zero > /tmp/full"), "disk");
    assert.equal(await causeOf("head -c 2G /dev/zero > /tmp/full; true"), null);
    assert.equal(await causeOf("touch /etc/new"), "filesystem");
    assert.equal(await causeOf("curl -sS --max-time 5 http://nowhere.example/"), "network");
    assert.equal(await causeOf("cat nothing-there"), "program");
  },
);

test("a box lost while its command runs ends with 125, with --json with 6", { skip }, async () => {
  for (const [flags, code] of [
    [[], 125],
    [["--json"], 6],
  ] as const) {
    await using place = await household();
    const ended = await sandboxExec(place, [...flags, ...sh("touch began; sleep 60")], {
      whenMade: [
        place.at("work/began"),
        () =>
          void boxesOver(place.at("work")).then((boxes) =>
            Promise.all(boxes.map((id) => engine.api.getContainer(id).kill())),
          ),
      ],
    });
    assert.equal(ended.code, code, ended.stderr);
    assert.match(`${ended.stdout.toString()}${ended.stderr}`, /the box was lost: /);
  }
});

test("folders of any name can be workspaces, and files of any name are listed", { skip }, async () => {
  await using place = await household();
  for (const name of ["a\nb", "a,b: 'ä\" $x", "-n"]) {
    const folder = place.at(name);
    await mkdir(folder);
    await giveAway(folder);
    const line = 'printf %s "$(pwd)"; printf x > "$(printf "bad\\377\\nname")"';
    const ended = await sandboxExec(place, ["--json", ...sh(line)], { cwd: folder });
    const { exit_code, stdout, changes } = answerOf(ended);
    assert.deepEqual([exit_code, stdout], [0, folder]);
    assert.deepEqual((changes as { added: string[] }).added, ["bad\uDCFF\nname"]);
  }
});

test("files planted by a command are moved out, and the restore command is shown", { skip }, async () => {
  await using place = await household();
  const { code, stderr } = await sandboxExec(place, sh("mkdir .vscode && echo '{}' > .vscode/tasks.json"));
  assert.equal(code, 0);
  const [, to = ""] = /to restore it: mv -nT -- '?([^' ]*)'?/.exec(stderr) ?? [];
  assert.equal(await readFile(path.join(to, "tasks.json"), "utf8"), "{}\n");
  assert.deepEqual(await readdir(place.at("work")), []);
});
