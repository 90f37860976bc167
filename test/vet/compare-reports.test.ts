import assert from "node:assert/strict";
import test from "node:test";
import type { Finding, VetReport, VetStep } from "../../src/core/behaviour.ts";
import { compareReports } from "../../src/vet/compare-versions.ts";

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

test("what is new decides, what was there before does not, and what is gone is said", () => {
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

test("changes of behaviour are told in plain words, made visible", () => {
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
