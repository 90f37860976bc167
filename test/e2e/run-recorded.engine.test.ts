import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import test, { after } from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { bash, finishedOf, harness, type Ran, type Said, startModel } from "./run-command.ts";
import { startHttp } from "../fakes/loopback.ts";

/** Recorded where what is contained runs, then run again where every ask is refused: the proposal is what it takes. */

const server = await startHttp((_, response) => response.end("HOST\n"));
after(() => server[Symbol.asyncDispose]());

const DONE: Said = { text: "Everything is done." };
const FILES = {
  "package.json": JSON.stringify({ scripts: { build: "mkdir -p out && echo built > out/a.txt" } }),
  "my web/run.sh": "echo ran > ran.txt\n",
  ".env": "API_TOKEN=hunter2hunter2\n",
};

const commands = (): readonly string[] => [
  "npm run build 2>&1 | tail -5",
  "cd 'my web' && sh run.sh && cd ..",
  "echo 1 > out/r-1a2b3c4d.txt",
  "echo 2 > out/r-9f8e7d6c.txt",
  `curl -sS --noproxy none.test http://127.0.0.1:${server.port}/x > out/host.txt`,
  "rm -rf out/old; ls out",
];

test(
  "the recorded rules suffice for the same run with --on-ask refuse, and allow nothing else",
  { skip },
  async () => {
    await using place = await household(FILES);
    const said = (list: readonly string[]): readonly Said[] => [
      ...list.map((command) => bash(command)),
      { calls: [["write_file", { path: "note.txt", content: "x" }]] },
      DONE,
    ];
    const run = async (words: readonly string[], replies: readonly Said[]): Promise<Ran> => {
      await using model = await startModel(replies);
      return await harness(place, ["run", "--intent", "change", ...words, ...model.flags, "do it"]);
    };
    const wide = ["--allow-domain", `127.0.0.1:${server.port},unused.example.org`];
    const first = await run(["--json", "--record", ...wide], said([...commands(), "cat .env", "rm -rf ~"]));
    const { recorded, denials } = finishedOf(first);
    assert.deepEqual(
      denials.map(({ target }) => target),
      ["cat .env", "rm -rf ~"],
      first.stderr + first.stdout,
    );
    assert.ok(recorded !== undefined);
    const { policy, examples, allow_domains, left, refused } = recorded;
    assert.deepEqual([allow_domains, left, refused], [[`127.0.0.1:${server.port}:read`], 0, 2]);
    // Beside the sessions, and nothing of it in the workspace.
    assert.ok(policy.startsWith(place.path) && !policy.startsWith(place.at("work/")), policy);
    const made = [".env", "my web", "note.txt", "out", "package.json"];
    assert.deepEqual(readdirSync(place.at("work")).toSorted(), made);
    const text = readFileSync(policy, "utf8");
    assert.ok(!text.includes("hunter2"));
    assert.match(text, /Refused, so not proposed:\n# {3}cat \.env.*\n# {3}rm -rf ~/);

    const told = await harness(place, ["report"]);
    assert.match(told.stdout, /recorded: rules and hosts that would have been enough\n.*proposals/);
    const tests = [
      await harness(place, ["policy", "test", policy]),
      await harness(place, ["policy", "test", "--rules", policy, examples]),
      await harness(place, ["policy", "test", examples]),
    ];
    // Under the user's own rules, of which there are none yet, the same commands require confirmation.
    assert.deepEqual(
      tests.map(({ code }) => code),
      [0, 0, 1],
      tests.map(({ stdout, stderr }) => stdout + stderr).join("\n"),
    );
    const again = await harness(place, ["policy", "propose"]);
    assert.deepEqual([again.code, again.stdout], [0, text], again.stderr);

    const strict = ["--on-ask", "refuse", "--allow-domain", allow_domains.join(",")];
    const without = await run(["--json", ...strict], said(commands()));
    assert.equal(finishedOf(without).denials.length, commands().length, without.stderr);
    await place.write(".config/harness/policy.toml", text);
    const second = await run(["--json", ...strict], said(commands()));
    assert.deepEqual([second.code, finishedOf(second).denials], [0, []], second.stderr);
    assert.equal(readFileSync(place.at("work/out/host.txt"), "utf8"), "HOST\n");
    assert.equal(existsSync(place.at("work/my web/ran.txt")), true);

    const beyond = ["npm run deploy", "echo 3 > other.txt", "cat .env", "sh 'my web/run.sh' x"];
    const third = await run(
      [...strict, "--record"],
      [...beyond.map((command) => bash(command)), bash("echo 3 > out/r-0a0b0c0d.txt"), DONE],
    );
    assert.match(third.stderr, /recorded +1 rule, 4 refused: \S+\.toml\n +harness policy test \S+\.toml\n/);
    for (const each of beyond) assert.ok(third.stderr.includes(each), third.stderr);
    assert.deepEqual(
      [existsSync(place.at("work/other.txt")), existsSync(place.at("work/out/r-0a0b0c0d.txt"))],
      [false, true],
    );

    const { stdout } = await harness(place, ["sessions", "list", "--json"]);
    assert.ok(existsSync(policy));
    const ids = stdout.split("\n").filter((line) => line !== "");
    const [session = ""] = ids.flatMap((line) => {
      const { id } = JSON.parse(line) as { readonly id: string };
      return policy.includes(id) ? [id] : [];
    });
    assert.equal((await harness(place, ["sessions", "rm", session])).code, 0);
    assert.deepEqual([existsSync(policy), existsSync(examples)], [false, false]);
  },
);
