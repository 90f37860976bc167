import assert from "node:assert/strict";
import test from "node:test";
import { podReportDifferences } from "../../src/kubernetes/connect-box.ts";
import { PLAN } from "../fixtures/pod-plan.ts";

/** The status of a first process with these rights under gVisor's kernel: without NoNewPrivs and CapAmb. */
const GVISOR = [
  "Uid:\t1000\t1000\t1000\t1000",
  "Gid:\t1000\t1000\t1000\t1000",
  "Groups:\t1000",
  ...["CapInh", "CapPrm", "CapEff", "CapBnd"].map((name) => `${name}:\t0000000000000000`),
  "Seccomp:\t0",
];

/** Without the lines on mounts. */
const aboutProcess = (runtimeClass: string | null, status: readonly string[]): readonly string[] =>
  podReportDifferences(
    { ...PLAN, runtimeClass },
    {
      status: `${status.join("\n")}\n`,
      mountinfo: "",
      netdev: "",
      route: "",
      rlimits: "",
      stats: [],
      hostname: "sandbox",
    },
  ).filter((line) => !/mount/.test(line));

test("what gVisor's kernel does not report is no deviation for a runtime class of gVisor", () => {
  for (const name of ["gvisor", "runsc", "runsc-kvm"]) assert.deepEqual(aboutProcess(name, GVISOR), []);
  for (const name of ["kata", null]) {
    const lines = aboutProcess(name, GVISOR);
    assert.ok(lines.includes("NoNewPrivs is unknown, planned 1"), lines.join());
    assert.ok(lines.includes("Seccomp is 0, planned 2"), lines.join());
    assert.ok(lines.some((line) => line.startsWith("the limit nofile is unknown")));
  }
});

test("a runtime class with gVisor's name over another kernel is held to all that this kernel reports", () => {
  assert.deepEqual(aboutProcess("gvisor", [...GVISOR, "NoNewPrivs:\t1"]), ["Seccomp is 0, planned 2"]);
  assert.deepEqual(aboutProcess("gvisor", [...GVISOR, "NoNewPrivs:\t0"]), [
    "NoNewPrivs is 0, planned 1",
    "Seccomp is 0, planned 2",
  ]);
  assert.match(
    aboutProcess(
      "gvisor",
      GVISOR.map((line) => line.replace(/^(CapBnd:\t).*/, "$100000000000000ff")),
    ).join(),
    /^CapBnd is 0*ff, planned none$/,
  );
});
