import assert from "node:assert/strict";
import test from "node:test";
import { type Judge, judgeIn } from "../../src/agent/action-judge.ts";
import { refusedBy } from "../../src/agent/approvers.ts";
import { type Mode, MODES } from "../../src/core/decision.ts";

/** Of variables of every kind that says something to a program, and of plain ones. */
const VARIABLES: readonly (readonly [name: string, value: string])[] = [
  ["FOO", "1"],
  ["EMPTY", ""],
  ["QUOTED", "it's $(rm -rf /) `x` \n; true"],
  ["PATH", "/x:/usr/bin"],
  ["PATH", "/usr/bin:/bin"],
  ["LD_PRELOAD", "/tmp/x.so"],
  ["LD_LIBRARY_PATH", "/tmp"],
  ["IFS", "/"],
  ["HOME", "/etc"],
  ["HOME", "/tmp/home"],
  ["CDPATH", "/etc"],
  ["GLOBIGNORE", "*"],
  ["ENV", "/tmp/rc"],
  ["PS4", "$(touch x)"],
  ["PROMPT_COMMAND", "rm -rf /"],
  ["NODE_OPTIONS", "--require /tmp/x.js"],
  ["PYTHONPATH", "/tmp"],
  ["PYTHONSTARTUP", "/tmp/x.py"],
  ["GIT_DIR", "/etc"],
  ["GIT_SSH_COMMAND", "sh -c x"],
  ["EDITOR", "vim"],
  ["PAGER", "less"],
  ["http_proxy", "http://x.example"],
  ["TMPDIR", "/etc"],
  ["POSIXLY_CORRECT", "1"],
  ["LC_ALL", "C"],
  ["SECRET_TOKEN", "AKIAIOSFODNN7EXAMPLE"],
  ["DOCKER_HOST", "tcp://x:1"],
];

function counting(mode: Mode): { readonly judge: Judge; readonly texts: string[] } {
  const texts: string[] = [];
  const own = judgeIn({ mode, workspace: "/repo", home: "/home/user", links: (path) => path });
  return { texts, judge: { judge: (facts) => (texts.push(...facts.commands), own.judge(facts)) } };
}

for (const mode of MODES)
  test(`in ${mode}, variables judged together are refused as each is alone`, async () => {
    const { judge } = counting(mode);
    const alone = async (name: string, value: string): Promise<boolean> =>
      (await refusedBy(() => Promise.resolve(judge), mode)(new Map([[name, value]]))).has(name);
    const bad = new Map<string, boolean>();
    for (const [name, value] of VARIABLES) bad.set(`${name}=${value}`, await alone(name, value));
    if (mode === "workspace-write")
      assert.deepEqual([bad.get("FOO=1"), bad.get("http_proxy=http://x.example")], [false, true]);
    for (const one of VARIABLES)
      for (const other of VARIABLES) {
        if (one[0] === other[0]) continue;
        const expected = [one, other].filter((pair) => bad.get(pair.join("="))).map(([name]) => name);
        const refused = await refusedBy(() => Promise.resolve(judge), mode)(new Map([one, other]));
        assert.deepEqual([...refused], expected, `${one.join("=")} ${other.join("=")}`);
      }
  });

test("any number of variables that may go on are judged in one text, and once", async () => {
  const { judge, texts } = counting("workspace-write");
  const refused = refusedBy(() => Promise.resolve(judge), "workspace-write");
  const many = new Map(Array.from({ length: 90 }, (_, at) => [`V${at}`, String(at)]));
  assert.deepEqual([[...(await refused(many))], texts.length], [[], 1]);
  assert.deepEqual([[...(await refused(many))], texts.length], [[], 1]);
  assert.deepEqual([[...(await refused(new Map([["V1", "other"]])))], texts.length], [[], 2]);
});

test("what is refused is found among others, and not judged again while it stays the same", async () => {
  const { judge, texts } = counting("workspace-write");
  const refused = refusedBy(() => Promise.resolve(judge), "workspace-write");
  const three = new Map([
    ["A", "1"],
    ["http_proxy", "http://x.example"],
    ["B", "2"],
  ]);
  assert.deepEqual([[...(await refused(three))], texts.length], [["http_proxy"], 4]);
  const proxy = new Map([["http_proxy", "http://x.example"]]);
  assert.deepEqual([[...(await refused(proxy))], texts.length], [["http_proxy"], 4]);
  assert.deepEqual(
    [[...(await refused(new Map([["http_proxy", "http://y.example"]])))], texts.length],
    [["http_proxy"], 5],
  );
});
