import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { type Finding, verdictOf } from "../../src/core/behaviour.ts";
import { FolderTree } from "../../src/platform/folder-tree.ts";
import { handoffOf } from "../../src/policy/handoff-paths.ts";
import { lookAt } from "../../src/vet/look/look-at.ts";
import { BENIGN } from "../fixtures/zoo/benign.ts";
import { given, missedOf, toldOf } from "../fixtures/zoo/given.ts";
import { HOSTILE } from "../fixtures/zoo/hostile.ts";
import type { Repository } from "../fixtures/zoo/repositories.ts";

async function look(repository: Repository): Promise<readonly Finding[]> {
  const root = await mkdtemp(path.join(tmpdir(), "harness-test-"));
  try {
    const { packed: _, ...folder } = repository;
    const tree = await given(root, folder);
    const obeys = (file: string) => handoffOf([{ path: file, what: "added", kind: "file" }], tree)[0];
    return (await lookAt(new FolderTree(tree), { signal: new AbortController().signal, obeys })).findings;
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

test("the zoo covers all forms, is large enough, and everything hostile in it is to be named", () => {
  assert.ok(HOSTILE.length >= 60);
  assert.deepEqual(
    new Set(HOSTILE.map(({ form }) => form)),
    new Set(["npm", "pip", "cargo", "make", "maven", "go", "composer", "gem", "git", "plain"]),
  );
  assert.equal(new Set([...HOSTILE, ...BENIGN].map(({ name }) => name)).size, HOSTILE.length + BENIGN.length);
  const silent = HOSTILE.filter(
    ({ named = [], did = [], still }) => named.length + (still === true ? 0 : did.length) === 0,
  );
  assert.deepEqual(silent, []);
});

test("what a hostile repository's files reveal is named before anything runs", async () => {
  const missed = await Promise.all(
    HOSTILE.filter(({ named, archive }) => named !== undefined && archive === undefined).map(
      async (repository) => {
        const findings = await look(repository);
        // Its commands may weigh more.
        const verdict = repository.still === true ? verdictOf(findings) : repository.verdict;
        const still = { ...repository, still: true } as const;
        return missedOf(still, findings, verdict).map((each) => `${repository.name}: ${each}`);
      },
    ),
  );
  assert.deepEqual(missed.flat(), []);
});

test("an honest repository has only notes", async () => {
  const alarms = await Promise.all(
    BENIGN.map(async (repository) =>
      (await look(repository))
        .filter(({ weight }) => weight !== "note")
        .map((finding) => `${repository.name}: ${toldOf(finding)}`),
    ),
  );
  assert.deepEqual(alarms.flat(), []);
});
