import assert from "node:assert/strict";
import test from "node:test";
import type { Finding, VetReport, VetStep } from "../../src/core/behaviour.ts";
import { changedLocks, compareReports } from "../../src/vet/compare-versions.ts";
import { lookedAt } from "../fixtures/looked-at-tree.ts";
import { Findings } from "../../src/vet/look/looked-at.ts";

const step = (more: Partial<VetStep["observed"]>, command = "npm run postinstall"): VetStep => ({
  command,
  what: "install",
  from: "package.json",
  exit_code: 0,
  cause: null,
  reason: "",
  duration_ms: 1,
  observed: {
    by: "calls",
    processes: [],
    acts: [],
    missed: { processes: 0, acts: 0 },
    touched: null,
    unseen: [],
    ...more,
  },
  connections: [],
  changes: { added: [], modified: [], deleted: [], more: 0 },
  peak: { memory_bytes: 0, pids: 1 },
  output: "",
});

const report = (findings: readonly Finding[], steps: readonly VetStep[]): VetReport => ({
  verdict: "quiet",
  exit_code: 0,
  repository: { name: "a", kind: "folder", commit: null, files: 1, bytes: 1 },
  findings,
  steps,
  granted: [],
  runtime: "the engine's own",
  unseen: ["something"],
  took_ms: 2,
  own_ms: 1,
});

const NOISE: Finding = { rule: "run.connect", weight: "noisy", text: "tries 203.0.113.7:443" };
const HOOK: Finding = { rule: "run.hooks", weight: "hostile", text: "makes x", path: ".git/hooks/x" };

test("only new findings decide the verdict, and those that are gone are listed", () => {
  const same = compareReports(report([NOISE], []), report([{ ...NOISE, text: "tries 203.0.113.8:443" }], []));
  assert.deepEqual([same.verdict, same.exit_code, same.findings], ["quiet", 0, []]);
  const worse = compareReports(report([NOISE], []), report([HOOK], []));
  assert.deepEqual(
    [worse.verdict, worse.exit_code, worse.findings, worse.gone],
    ["hostile", 40, [HOOK], [NOISE]],
  );
  const better = compareReports(report([HOOK], []), report([], []));
  assert.deepEqual([better.verdict, better.gone], ["quiet", [HOOK]]);
  assert.equal(compareReports(report([], []), report([], []), [NOISE]).verdict, "noisy");
});

test("changes of behaviour are described in plain words, with control characters made visible", () => {
  const connect = {
    kind: "connect",
    family: "ip",
    address: "203.0.113.7",
    port: 443,
    pid: 2,
    at: 1,
    times: 1,
  } as const;
  const write = { kind: "write", path: "/home/box/.bash\u001Brc", pid: 2, at: 1, times: 1 } as const;
  const cache = { kind: "write", path: "/home/box/.npm/a", pid: 2, at: 1, times: 1 } as const;
  const sh = { pid: 2, parent: 1, words: ["/bin/sh", "-c", "x"], at: 0 };
  const before = report([], [step({ processes: [{ ...sh, words: ["node"] }] })]);
  const after = report(
    [],
    [step({ acts: [connect, write, cache], processes: [sh] }), step({}, "npm run prepare")],
  );
  assert.deepEqual(compareReports(before, after).changes, [
    "now has the install command npm run prepare",
    "now contacts 203.0.113.7:443",
    "now runs sh",
    "no longer runs node",
    "now writes /home/box/.bash␛rc",
  ]);
  assert.deepEqual(compareReports(after, after).changes, []);
});

const REGISTRY = "https://registry.example";
const entry = (name: string, version: string, more: object = {}): readonly [string, object] => [
  name,
  { version, resolved: `${REGISTRY}/${name}/-/${name}-${version}.tgz`, integrity: "sha512-a", ...more },
];
const npm = (...entries: readonly (readonly [string, object])[]): readonly [string, string] => [
  "package-lock.json",
  JSON.stringify({
    lockfileVersion: 3,
    packages: Object.fromEntries(entries.map(([name, each]) => [`node_modules/${name}`, each])),
  }),
];
const MS = entry("ms", "2.1.3");
const git = (commit: string, owner = "jo", host = "github.com"): readonly [string, object] =>
  entry("left", "1.0.0", {
    resolved: `git+ssh://git@${host}/${owner}/left.git#${commit}`,
    integrity: undefined,
  });

/** Both versions of a lock, and the findings about the change. */
const CASES: readonly (readonly [readonly [string, string], readonly [string, string], readonly string[]])[] =
  [
    [npm(MS), npm(MS), []],
    [npm(MS), npm(MS, entry("left", "1.0.0")), ["change.dependency left 1.0.0 is new"]],
    [npm(MS, entry("left", "1.0.0")), npm(MS), ["change.dependency left 1.0.0 is removed"]],
    [
      npm(entry("left", "1.0.0"), entry("a/node_modules/left", "2.0.0")),
      npm(entry("left", "1.0.0"), entry("a/node_modules/left", "2.1.0")),
      ["change.dependency left 2.0.0 becomes 2.1.0"],
    ],
    [
      npm(MS),
      npm(MS, entry("a/node_modules/ms", "1.0.0")),
      ["change.dependency ms 1.0.0 is new beside 2.1.3"],
    ],
    [
      npm(MS),
      npm(entry("ms", "2.1.3", { integrity: "sha512-b" })),
      ["change.integrity ms 2.1.3 has a different integrity hash than before"],
    ],
    // A second copy of a version must have the hash of the first.
    [
      npm(MS),
      npm(MS, entry("a/node_modules/ms", "2.1.3", { integrity: "sha512-b" })),
      ["change.integrity ms 2.1.3 has a different integrity hash than before"],
    ],
    [
      npm(MS),
      npm(entry("ms", "2.1.4", { integrity: undefined })),
      [
        "change.unproved ms 2.1.4 has no integrity hash, although its earlier version had one",
        "change.dependency ms 2.1.3 becomes 2.1.4",
      ],
    ],
    [
      npm(MS),
      npm(MS, entry("left", "1.0.0", { integrity: undefined })),
      [
        "change.unproved left 1.0.0 has no integrity hash, although all others had one",
        "change.dependency left 1.0.0 is new",
      ],
    ],
    [
      npm(MS, entry("a", "1.0.0", { integrity: undefined })),
      npm(MS, entry("a", "1.0.0", { integrity: undefined }), entry("b", "1.0.0", { integrity: undefined })),
      ["change.dependency b 1.0.0 is new"],
    ],
    [
      npm(MS, entry("left", "1.0.0")),
      npm(MS, entry("left", "1.0.0", { hasInstallScript: true })),
      [
        "change.script left 1.0.0 runs code when it is installed, according to the lock; no earlier version of it did",
      ],
    ],
    [
      npm(entry("left", "1.0.0", { hasInstallScript: true })),
      npm(entry("left", "1.0.1", { hasInstallScript: true })),
      ["change.dependency left 1.0.0 becomes 1.0.1"],
    ],
    [
      npm(git("abc")),
      npm(git("abd")),
      ["change.dependency left 1.0.0 comes from another commit: abd, not abc"],
    ],
    [
      npm(git("abc")),
      npm(git("abc", "eve")),
      [
        "change.source left 1.0.0 comes from git+ssh://git@github.com/eve/left.git#abc, not from git+ssh://git@github.com/jo/left.git#abc",
      ],
    ],
    [
      npm(git("abc")),
      npm(entry("left", "1.0.0", { resolved: "git+https://github.com/Jo/left#abc", integrity: undefined })),
      [],
    ],
    [
      npm(git("abc")),
      npm(git("abc", "jo", "git.evil.example")),
      [
        "change.lock-host left 1.0.0: git+ssh://git@git.evil.example/jo/left.git#abc",
        "change.source left 1.0.0 comes from git+ssh://git@git.evil.example/jo/left.git#abc, not from git+ssh://git@github.com/jo/left.git#abc",
      ],
    ],
    [
      ["requirements.txt", "a==1 --hash=sha256:aa --hash=sha256:bb\n"],
      ["requirements.txt", "a==1 --hash=sha256:aa --hash=sha256:cc\n"],
      ["change.integrity a 1 has a different integrity hash than before"],
    ],
    [
      ["requirements.txt", "a==1 --hash=sha256:aa\n"],
      ["requirements.txt", "a==1 --hash=sha256:aa --hash=sha256:cc\n"],
      ["change.dependency a 1 has more hashes than before (1 added)"],
    ],
    [
      [
        "go.sum",
        "example.org/a v1.0.0 h1:x=\nexample.org/a v1.0.0/go.mod h1:y=\nexample.org/b v1.0.0/go.mod h1:b=\n",
      ],
      [
        "go.sum",
        "example.org/a v1.0.0 h1:x=\nexample.org/a v1.0.0/go.mod h1:z=\nexample.org/c v1.0.0/go.mod h1:b=\n",
      ],
      ["change.integrity example.org/a v1.0.0 has a different integrity hash than before"],
    ],
    [
      [
        "composer.lock",
        '{"packages":[{"name":"a/b","version":"1","dist":{"url":"https://api.github.com/a","reference":"x"}}]}',
      ],
      [
        "composer.lock",
        '{"packages":[{"name":"a/b","version":"1","dist":{"url":"https://api.github.com/a","reference":"x"},"type":"composer-plugin"}]}',
      ],
      [
        "change.script a/b 1 runs code when it is installed, according to the lock; no earlier version of it did",
      ],
    ],
    [
      ["Gemfile.lock", "GIT\n  remote: https://github.com/a/b.git\n  revision: 11\n  specs:\n    b (1.0)\n"],
      ["Gemfile.lock", "GIT\n  remote: https://github.com/a/b.git\n  revision: 22\n  specs:\n    b (1.0)\n"],
      ["change.dependency b 1.0 comes from another commit: 22, not 11"],
    ],
  ];

const locksIn = async ([name, text]: readonly [string, string]) =>
  (await lookedAt({ [name]: text })).facts.locks;

for (const [at, [before, after, wanted]] of CASES.entries())
  test(`change ${at} of a lock reports ${wanted.join(", ") || "nothing"}`, async () => {
    const found = new Findings();
    changedLocks(await locksIn(before), await locksIn(after), found);
    assert.deepEqual(
      found.all().map(({ rule, text }) => `${rule} ${text}`),
      wanted,
    );
  });
