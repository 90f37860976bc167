import assert from "node:assert/strict";
import test from "node:test";
import { runProgram } from "../fixtures/cli.ts";
import { scratch } from "../fixtures/scratch.ts";

/** What each says of a place where no folder can be made: its cause with the folder, and what to look at or type. */
const WRITES: readonly (readonly string[])[] = [
  ["sessions", "list"],
  ["search", "word"],
  ["index"],
  ["undo"],
  ["config", "set", "mode", "read-only"],
  ["policy", "allow", "--", "npm", "run", "build"],
  ["doctor", "--bundle"],
  ["batch", "--repos", "rows.jsonl", "--prompt", "look"],
];

/** What needs none of these places is done all the same. */
const READS: readonly (readonly string[])[] = [
  ["policy", "check", "--", "ls"],
  ["config", "list"],
  ["trust"],
  ["__complete", "bash", "1", "harness", "sess"],
];

const skip = process.platform !== "linux" && "there is no /proc here";

for (const base of ["/proc/none", "/proc/self/none", "/dev/null"]) {
  const env = {
    // That of the tests would stand in for the one that cannot be had.
    NODE_COMPILE_CACHE: "",
    XDG_STATE_HOME: `${base}/state`,
    XDG_CACHE_HOME: `${base}/cache`,
    XDG_CONFIG_HOME: `${base}/config`,
  };
  for (const words of WRITES)
    test(
      `harness ${words.join(" ")} ends with the cause if ${base} cannot hold its files`,
      { skip },
      async () => {
        await using place = await scratch({ "rows.jsonl": `{"repo":"."}\n` });
        const { code, stderr } = await runProgram("bin/harness", words, {
          home: place.path,
          cwd: place.path,
          env,
        });
        assert.match(stderr, new RegExp(`error: .*${base}/(?:state|config)/harness.* cannot be made`));
        assert.match(stderr, /\n {2}next: \S/);
        assert.doesNotMatch(stderr, /internal error/);
        assert.ok(code === 1 || code === 2, `${code}`);
      },
    );
  for (const words of READS)
    test(`harness ${words.join(" ")} works even if ${base} cannot hold its files`, { skip }, async () => {
      await using place = await scratch();
      const { code, stdout } = await runProgram("bin/harness", words, {
        home: place.path,
        cwd: place.path,
        env,
      });
      assert.equal(code, 0);
      assert.notEqual(stdout, "");
    });
}
