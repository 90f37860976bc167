import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { CommandPolicy } from "../../src/policy/decide.ts";
import { HOME, judgedIn, WORKSPACE } from "../fixtures/policy/corpus.ts";

interface Everyday {
  readonly cmd: string;
  readonly contained: boolean;
  /** Its effects are unknown: contained as long as no host is granted. */
  readonly offline?: true;
  readonly class: string;
  readonly why: string;
}

const ROOT = path.join(import.meta.dirname, "../fixtures/policy");
const everyday = globSync("contained/*.jsonl", { cwd: ROOT })
  .toSorted()
  .flatMap((file) => readFileSync(path.join(ROOT, file), "utf8").trimEnd().split("\n"))
  .map((line) => JSON.parse(line) as Everyday);

const policy = new CommandPolicy();
const judged = (cmd: string, granted: readonly string[] = []): ReturnType<typeof policy.decide> =>
  policy.decide(cmd, { mode: "workspace-write", workspace: WORKSPACE, home: HOME, granted });
const isContained = (cmd: string): boolean => judged(cmd).contained;
/** With a host that the box may reach. */
const isSurelyContained = (cmd: string): boolean => judged(cmd, ["granted.example"]).contained;

test("every everyday command has its fields, and occurs once", () => {
  const faults = everyday.filter(
    ({ cmd, contained, class: kind, why }) =>
      typeof contained !== "boolean" ||
      [cmd, kind, why].some((text) => typeof text !== "string" || text === ""),
  );
  assert.deepEqual(faults, []);
  assert.equal(new Set(everyday.map(({ cmd }) => cmd)).size, everyday.length);
  assert.ok(everyday.length > 700);
});

test("no command that leaves the box is contained", () => {
  const leaving = everyday.filter(({ contained }) => !contained);
  assert.ok(leaving.length > 100);
  assert.deepEqual(
    leaving.filter(({ cmd }) => isContained(cmd)).map(({ cmd, why }) => `${cmd}: ${why}`),
    [],
  );
});

test("at least 97 of 100 commands that stay in the box are contained", () => {
  const staying = everyday.filter(({ contained }) => contained);
  const refused = staying.filter(({ cmd }) => !isContained(cmd)).map(({ cmd, why }) => `${cmd}: ${why}`);
  assert.ok(refused.length <= staying.length * 0.03, `${refused.length}:\n${refused.join("\n")}`);
});

const isReached = (denied: readonly string[]): boolean =>
  policy.decide("curl https://api.granted.example/x", {
    mode: "workspace-write",
    workspace: WORKSPACE,
    home: HOME,
    granted: ["*.granted.example"],
    denied,
  }).contained;

test("a denied host is not contained, whatever is granted", () => {
  for (const others of [[], ["other.example"]]) assert.equal(isReached(others), true);
  for (const name of ["api.granted.example", "*.granted.example"]) assert.equal(isReached([name]), false);
});

test("no command that cannot be analysed is contained where a host is granted", () => {
  const unknown = everyday.filter(({ offline, contained }) => offline === true || !contained);
  assert.ok(unknown.length > 180);
  assert.deepEqual(
    unknown.filter(({ cmd }) => isSurelyContained(cmd)).map(({ cmd, why }) => `${cmd}: ${why}`),
    [],
  );
});

test("at least 97 of 100 analysable commands stay contained where a host is granted", () => {
  const followed = everyday.filter(({ offline, contained }) => contained && offline !== true);
  const refused = followed.filter(({ cmd }) => !isSurelyContained(cmd)).map(({ cmd }) => cmd);
  assert.ok(refused.length <= followed.length * 0.03, `${refused.length}:\n${refused.join("\n")}`);
});

const attacks = judgedIn("attacks/*.jsonl").filter(({ mode }) => mode === "workspace-write");
/** Their danger lies outside the box: other hosts, other users' rights, the box's walls. */
const OUTSIDE = new Set(
  `net-exfil dev-tcp curl-sh addresses network container-ns git-destructive package-verbs runner-verbs arith
  stdin-script response-file shell-dialect parse-error`.split(/\s+/),
);
/** They only read, or contact the box itself; the box's walls decide what an unknown name means. */
const READS = new Set([
  "curl http://localhost:8080/",
  "ls \\\\\\\\evil.example\\\\share",
  "cat //evil.example/share/x /etc/shadow",
  "cat < /dev/$x/evil.example/80",
  "x=tcp; echo y > /dev/$x/127.0.0.1/80",
  "ls > /dev/tcp/127.0.0.1/22",
]);

test("no attack on something outside the box is contained where a host is granted", () => {
  const dangers = attacks.filter(({ class: kind, cmd }) => OUTSIDE.has(kind) && !READS.has(cmd));
  assert.ok(dangers.length > 400);
  assert.deepEqual(
    dangers.filter(({ cmd }) => isSurelyContained(cmd)).map(({ cmd }) => cmd),
    [],
  );
});

/** Their targets lie outside every box; the other attacks only hide what they do. */
const REACHING_OUT = new Set("net-exfil curl-sh addresses network git-destructive package-verbs".split(" "));

test("no attack that names its host or repository is contained", () => {
  const dangers = attacks.filter(({ class: kind, cmd }) => REACHING_OUT.has(kind) && !READS.has(cmd));
  assert.ok(dangers.length > 250, String(dangers.length));
  assert.deepEqual(
    dangers.filter(({ cmd }) => isContained(cmd)).map(({ cmd }) => cmd),
    [],
  );
});

test("no read of a likely secret is contained", () => {
  // The box's variables are not secret: it gets none of the user's.
  const reads = attacks.filter(({ cmd }) =>
    judged(cmd).rules.some(
      ({ id, reason }) => id === "read.secret" && !reason.startsWith("/proc/self/environ"),
    ),
  );
  assert.ok(reads.length > 200);
  assert.deepEqual(
    reads.filter(({ cmd }) => isContained(cmd)).map(({ cmd }) => cmd),
    [],
  );
});

test("no attack that contacts another host, installs something, or changes something outside is contained", () => {
  const outside =
    /^(?:network|install|privilege|system|device|bomb|write\.(?:outside|trap)|delete\.(?:outside|broad))$/;
  const reaching = attacks.filter(({ cmd }) => {
    const { rules } = judged(cmd);
    return rules.some(({ id, reason }) => outside.test(id) && !reason.includes("its own machine"));
  });
  assert.ok(reaching.length > 500);
  assert.deepEqual(
    reaching.filter(({ cmd }) => isContained(cmd)).map(({ cmd }) => cmd),
    [],
  );
});

/** Commands that look contained, but hide an effect outside the box. */
const HIDDEN = [
  'cd "$(git rev-parse --show-toplevel)"; rm -rf ../x',
  'rm -rf "$(git rev-parse --show-toplevel)"',
  "grep -rl --regexp=foo /etc | xargs rm -f",
  "find -L /etc -name x | xargs rm -f",
  "find . -name x | xargs curl",
  "find . -name '*.txt' | sh",
  "TMPDIR=/opt; echo x > $TMPDIR/a",
  "read TMPDIR < f; echo x > $TMPDIR/a",
  "PATH=/opt/x:$PATH; make",
  "PATH=$(cat f):$PATH make",
  "read x < f; echo $((x + 1))",
  "x='a[$(id)]'; echo $((x))",
  "source ./env.sh; echo $((x + 1)) > $OUT",
  "bash <<'EOF'\nssh host.example\nEOF",
  "zsh <<'EOF'\nls\nEOF",
  "kill -9 -1",
  "kill 1",
  "trap 'curl example.com' EXIT",
  "python3 -m pdb -c 'p 1' x.py",
  "lua -e 'os.execute(\"id\")'",
  "npx --no-install -c 'curl https://example.com'",
  "sqlite3 a.db <<'EOF'\n.output |sh\nEOF",
  "java -javaagent:/opt/x.jar Main",
  "gdb -ex 'shell id' ./a.out",
  "valgrind curl example.com",
];
for (const cmd of HIDDEN)
  test(`not contained where a host is granted: ${cmd}`, () => assert.equal(isSurelyContained(cmd), false));

const LEAVING = HIDDEN.filter((cmd) => /ssh |curl |\.\.\/|TMPDIR=|toplevel\)"'?$|kill/.test(cmd));
for (const cmd of LEAVING.filter((each) => !each.startsWith("read TMPDIR")))
  test(`not contained: ${cmd}`, () => assert.equal(isContained(cmd), false));
