import assert from "node:assert/strict";
import { mkdir, readdir, symlink } from "node:fs/promises";
import path from "node:path";
import test, { after, describe } from "node:test";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

/** Compiled code is kept between these tests, so that each start is as quick as a user's. */
const cache = await scratch();
after(() => cache[Symbol.asyncDispose]());

const judge = (place: Scratch, words: readonly string[], cwd = place.at("w")): Promise<Ended> =>
  runProgram("bin/harness", ["policy", "path", ...words], {
    home: place.at("home"),
    cwd,
    env: { XDG_CACHE_HOME: cache.path },
  });

const workspace = (): Promise<Scratch> =>
  scratch({
    "w/src/a.ts": "",
    "w/.git/config": "",
    "w/.harnessignore": "hidden/\n",
    "home/x": "",
    "out/x": "",
  });

describe("policy path", { concurrency: 3 }, () => {
  for (const [words, code, judged, line] of [
    [["src/a.ts", "--op", "read"], 0, "src/a.ts", "allow  inside the workspace  (path.workspace)"],
    [["src/new.ts", "--op", "write"], 0, "src/new.ts", "allow  inside the workspace  (path.workspace)"],
    [
      ["src/../a.ts", "--op", "write", "--mode", "read-only"],
      10,
      "a.ts",
      "ask  the mode is read-only  (path.read-only)",
    ],
    [
      [".env", "--op", "read"],
      10,
      ".env",
      "ask  an environment file: passwords and keys of the project  (path.secret)",
    ],
    [
      [".GIT/hooks/x", "--op", "write", "--mode", "danger-full-access"],
      20,
      ".GIT/hooks/x",
      "deny  the host runs or obeys it; git: hooks, filters, fsmonitor and aliases of its configuration  (path.protected)",
    ],
    [
      ["/etc/passwd", "--op", "read"],
      20,
      "/etc/passwd",
      "deny  outside the workspace: file tools work only inside it  (path.outside)",
    ],
    [["hidden/a", "--op", "read"], 20, "hidden/a", "deny  hidden by .harnessignore  (path.ignored)"],
  ] as const)
    test(`${words.join(" ")} ends with ${code} and one line for the verdict`, async () => {
      await using place = await workspace();
      const stdout = `${line}\n    path  ${path.resolve(place.at("w"), judged)}\n`;
      assert.deepEqual(await judge(place, words), { code, stdout, stderr: "" });
    });

  test("--json prints one object", async () => {
    await using place = await workspace();
    const { code, stdout, stderr } = await judge(place, ["/root/.bashrc", "--op", "write", "--json"]);
    const span = [0, 13];
    const trap = "the host runs or obeys it; a shell runs it when it starts or ends";
    assert.deepEqual([code, stderr, stdout.split("\n").length], [20, "", 2]);
    assert.deepEqual(JSON.parse(stdout), {
      decision: "deny",
      contained: false,
      rules: [
        { id: "path.startup", reason: trap, span },
        { id: "path.outside", reason: "outside the workspace", span },
      ],
      path: "/root/.bashrc",
    });
    assert.equal((await judge(place, ["~/.bashrc", "--op", "write"])).code, 20);
  });

  test("a link is judged by its target, even if that does not exist", async () => {
    await using place = await workspace();
    await symlink("../.git", place.at("w/src/hooks"));
    await symlink("/etc/cron.d/nothing-there", place.at("w/src/job"));
    await symlink(place.at("w"), place.at("link"));
    const codes = async (given: string, cwd?: string): Promise<number | null> =>
      (await judge(place, [given, "--op", "write"], cwd)).code;
    assert.deepEqual(
      await Promise.all(["src/hooks/x", "src/job", "src/a.ts"].map((each) => codes(each))),
      [20, 20, 0],
    );
    assert.equal(await codes(place.at("link/src/a.ts"), place.at("link")), 0);
  });

  test("the workspace need not exist, and nothing is created", async () => {
    await using place = await workspace();
    const words = ["a.ts", "--op", "write", "--cwd", "/nowhere/project", "--json"];
    const { code, stdout } = await judge(place, words);
    assert.deepEqual([code, (JSON.parse(stdout) as { path: string }).path], [0, "/nowhere/project/a.ts"]);
    assert.deepEqual(await readdir(place.at("home")), ["x"]);
  });

  test("a path like an option must follow --, and one with control characters is refused and shown safely", async () => {
    await using place = await workspace();
    assert.equal((await judge(place, ["--op", "read", "--", "-rf"])).code, 0);
    const { code, stdout } = await judge(place, ["a\u001b[2Jb", "--op", "read"]);
    assert.deepEqual(
      [code, stdout],
      [20, "deny  the path contains a control character  (path.control)\n    path  a␛[2Jb\n"],
    );
  });

  for (const [name, words, cause] of [
    ["no path", ["--op", "read"], "Missing 1 required arg"],
    ["no operation", ["a"], "Missing required flag --op"],
    ["an unknown operation", ["a", "--op", "run"], "Expected --op=run to be one of: read, write"],
    [
      "an unknown mode",
      ["a", "--op", "read", "--mode", "yolo"],
      "Expected --mode=yolo to be one of: read-only",
    ],
  ] as const)
    test(`${name} ends with 2, its cause and the next step`, async () => {
      await using place = await workspace();
      const { code, stdout, stderr } = await judge(place, words);
      assert.deepEqual([code, stdout], [2, ""]);
      assert.ok(stderr.includes(cause) && stderr.endsWith("next: harness policy path --help\n"), stderr);
    });

  test("an unreadable .harnessignore ends with 2", async () => {
    await using place = await scratch({ "home/x": "" });
    await mkdir(place.at("w/.harnessignore"), { recursive: true });
    const { code, stderr } = await judge(place, ["a", "--op", "read"]);
    assert.equal(code, 2);
    assert.match(stderr, /\.harnessignore: cannot be read: it is not a file\n {2}next: make it a text file/);
  });
});
