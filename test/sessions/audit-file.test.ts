import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import test from "node:test";
import type { AuditVerdict, Session } from "../../src/core/session.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT } from "../contract/store-words.ts";
import { fc } from "../fixtures/property.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

/** A session whose audit has this many lines after its header, and the file. */
async function withAudit(
  lines: number,
  work: (session: Session, file: string, place: Scratch) => Promise<void> | void,
): Promise<void> {
  await using place = await scratch();
  let now = 1_700_000_000_000;
  using store = openStore(place.at("state"), { now: () => (now += 10) });
  const session = store.create(ABOUT);
  for (let at = 0; at < lines; at += 1) session.audit.write([{ kind: "notice", text: `${at} ä \u2028` }]);
  await work(session, session.audit.verify().file, place);
}

const brokenAt = ({ ok, broken }: AuditVerdict): number | undefined => (ok ? undefined : broken?.line);

test("an untouched file is verified", async () => {
  await withAudit(5, async (session, file) => {
    session.audit.write([{ kind: "run.started" }, { kind: "run.finished" }, { kind: "closed" }]);
    assert.deepEqual(session.audit.verify(), { file, ok: true, lines: 9, broken: null, notes: [] });
    const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
    const values = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.deepEqual(
      values.map(({ kind }) => kind),
      ["header", ...Array<string>(5).fill("notice"), "run.started", "run.finished", "closed"],
    );
    for (const [at, { prev }] of values.entries())
      assert.equal(prev, at === 0 ? "0".repeat(64) : values[at - 1]?.["hash"]);
    assert.deepEqual([values[8]?.["lines"], values[8]?.["head"]], [8, values[7]?.["hash"]]);
    assert.equal(statSync(file).mode & 0o777, 0o600);
  });
});

test("an empty audit is valid; a deleted one is not", async () => {
  await withAudit(0, (session) => assert.equal(session.audit.verify().ok, true));
  await withAudit(2, async (session, file) => {
    await rm(file);
    assert.deepEqual(session.audit.verify().broken, { line: 1, why: "3 lines are missing from here on" });
    session.audit.write([{ kind: "notice" }]);
    assert.equal(brokenAt(session.audit.verify()), 2, "writing on does not repair it");
  });
});

test("another file in its place is detected, even with a complete chain of the same length", async () => {
  await withAudit(3, async (session, file, place) => {
    using store = openStore(place.at("other"));
    const other = store.create(ABOUT);
    for (let at = 0; at < 3; at += 1) other.audit.write([{ kind: "notice", text: "forged" }]);
    const forged = (await readFile(other.audit.verify().file, "utf8")).replaceAll(other.id, session.id);
    await writeFile(file, forged);
    assert.equal(brokenAt(session.audit.verify()), 1);
  });
});

test("likely secrets are removed from texts, and very long texts are cut", async () => {
  await withAudit(0, async (session, file) => {
    const token = `ghp_${"a1B2c3D4e5".repeat(4).slice(0, 36)}`;
    session.audit.write([{ kind: "decision", command: `curl -H ${token}`, deep: [{ text: token }] }]);
    session.audit.write([{ kind: "notice", text: "y".repeat(3_000_000) }]);
    const text = await readFile(file, "utf8");
    assert.ok(!text.includes(token) && text.includes("[secret:"), text.slice(0, 400));
    assert.ok(text.length < 300_000);
    assert.equal(session.audit.verify().ok, true);
  });
});

test("two processes can write to one audit", async () => {
  await withAudit(1, (session, _, place) => {
    using store = openStore(place.at("state"));
    const same = store.open(session.id);
    for (let at = 0; at < 5; at += 1) {
      same.audit.write([{ kind: "notice", text: "b" }]);
      session.audit.write([{ kind: "notice", text: "a" }]);
    }
    const { ok, lines } = same.audit.verify();
    assert.deepEqual([ok, lines], [true, 12]);
  });
});

test("the audit is removed with its session", async () => {
  await using place = await scratch();
  using store = openStore(place.at("state"));
  const session = store.create(ABOUT);
  session.audit.write([{ kind: "notice" }]);
  const { file } = session.audit.verify();
  store.remove(session.id);
  assert.equal(statSync(file, { throwIfNoEntry: false }), undefined);
  assert.throws(() => session.audit.write([{ kind: "notice" }]), /was removed/);
  assert.equal(statSync(file, { throwIfNoEntry: false }), undefined);
});

/** Every kind of tampering with a file: by bytes, and by whole lines. */
const tampering = fc.oneof(
  fc.record({ how: fc.constant("byte" as const), at: fc.nat(), with: fc.integer({ min: 1, max: 255 }) }),
  fc.record({ how: fc.constant("cut" as const), at: fc.nat(), with: fc.nat() }),
  fc.record({ how: fc.constant("drop" as const), at: fc.nat(), with: fc.nat() }),
  fc.record({ how: fc.constant("swap" as const), at: fc.nat(), with: fc.nat() }),
  fc.record({ how: fc.constant("repeat" as const), at: fc.nat(), with: fc.nat() }),
  fc.record({ how: fc.constant("insert" as const), at: fc.nat(), with: fc.integer({ min: 0, max: 255 }) }),
);

const joined = (all: readonly string[]): Buffer => Buffer.from(all.map((each) => `${each}\n`).join(""));

function tampered(
  bytes: Buffer,
  { how, at, with: other }: { how: string; at: number; with: number },
): Buffer {
  const lines = bytes.toString("utf8").trimEnd().split("\n");
  const [line, second] = [at % lines.length, other % lines.length];
  const place = at % bytes.length;
  switch (how) {
    case "byte": {
      const copy = Buffer.from(bytes);
      copy[place] = (copy[place] ?? 0) ^ other;
      return copy;
    }
    case "cut":
      return bytes.subarray(0, place);
    case "insert":
      return Buffer.concat([bytes.subarray(0, place), Buffer.of(other), bytes.subarray(place)]);
    case "drop":
      return joined(lines.toSpliced(line, 1));
    case "repeat":
      return joined(lines.toSpliced(second, 0, lines[line] ?? ""));
    default: {
      const swapped = lines.with(line, lines[second] ?? "").with(second, lines[line] ?? "");
      return joined(swapped);
    }
  }
}

test("any change, removal, insertion or reordering breaks the chain permanently", async () => {
  await withAudit(6, async (session, file) => {
    session.audit.write([{ kind: "run.finished" }, { kind: "closed" }]);
    const whole = await readFile(file);
    let changed = 0;
    await fc.assert(
      fc.asyncProperty(tampering, async (what) => {
        const bytes = tampered(whole, what);
        await writeFile(file, bytes);
        // The final line feed does not matter: without it all lines are still there.
        const same = bytes.equals(whole) || bytes.equals(whole.subarray(0, -1));
        changed += Number(!same);
        assert.equal(session.audit.verify().ok, same, JSON.stringify(what));
      }),
      { numRuns: 400 },
    );
    assert.ok(changed > 300);
  });
});

test("the changed line is the one that is named", async () => {
  await withAudit(6, async (session, file) => {
    const whole = await readFile(file);
    const places = fc.record({ at: fc.nat(whole.length - 1), bits: fc.integer({ min: 1, max: 255 }) });
    await fc.assert(
      fc.asyncProperty(places, async ({ at, bits }) => {
        const changed = (whole[at] ?? 0) ^ bits;
        fc.pre(whole[at] !== 0x0a && changed !== 0x0a);
        await writeFile(file, whole.with(at, changed));
        const line = whole.subarray(0, at).toString("latin1").split("\n").length;
        assert.equal(brokenAt(session.audit.verify()), line);
      }),
      { numRuns: 200 },
    );
  });
});

test("a continued run does not hide earlier tampering with the file", async () => {
  await fc.assert(
    fc.asyncProperty(tampering, async (what) => {
      await withAudit(4, async (session, file) => {
        const whole = await readFile(file);
        const bytes = tampered(whole, what);
        const same = bytes.equals(whole) || bytes.equals(whole.subarray(0, -1));
        await writeFile(file, bytes);
        session.audit.write([{ kind: "run.started" }]);
        session.audit.write([{ kind: "run.finished" }, { kind: "closed" }]);
        assert.equal(session.audit.verify().ok, same, JSON.stringify(what));
      });
    }),
    { numRuns: 60 },
  );
});
