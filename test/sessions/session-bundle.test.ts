import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import test, { describe } from "node:test";
import { openStore } from "../../src/sessions/session-store.ts";
import { bundleOf, openBundle, type Parts } from "../../src/sessions/session-bundle.ts";
import { ABOUT } from "../contract/store-words.ts";
import { scratch } from "../fixtures/scratch.ts";

interface Made {
  readonly bytes: Buffer;
  readonly parts: Parts;
}

async function made(): Promise<Made> {
  await using place = await scratch();
  using store = openStore(place.at("state"), { now: () => 1_700_000_000_000 });
  const session = store.create(ABOUT);
  session.audit.write([{ kind: "run.started" }, { kind: "decision", command: "ls" }]);
  session.audit.write([{ kind: "closed" }]);
  const parts = {
    "events.jsonl": Buffer.from('{"at":1}\n'),
    "records.jsonl": Buffer.from('{"kind":"cleared"}\n'),
    "changes.patch": Buffer.alloc(0),
    "audit.jsonl": readFileSync(session.audit.verify().file),
    "settings.json": Buffer.from(`${" ".repeat(600)}{}\n`),
  };
  const about = {
    session: session.info(),
    harness: "1.0.0",
    policy: "abc",
    model: { provider: "ollama", name: "coder:7b", digest: null },
  };
  const bytes = bundleOf(about, parts);
  assert.deepEqual(bundleOf(about, parts), bytes);
  return { bytes, parts };
}

const refused = (bytes: Buffer, exit: number, said: RegExp): void => {
  assert.throws(
    () => openBundle(bytes, "x.tar"),
    (thrown: Error & { exit?: number; remedy?: string }) => {
      assert.match(thrown.message, said);
      assert.equal(thrown.exit, exit);
      assert.ok((thrown.remedy ?? "") !== "");
      return true;
    },
  );
};

/** Where a member's header begins. */
const headerAt = (bytes: Buffer, name: string): number => {
  for (let at = 0; at < bytes.length; at += 512)
    if (bytes.toString("latin1", at, at + name.length + 1) === `${name}\0`) return at;
  return assert.fail(`no ${name}`);
};

const changed = (bytes: Buffer, at: number, to: string | Buffer): Buffer =>
  Buffer.concat([bytes.subarray(0, at), Buffer.from(to), bytes.subarray(at + Buffer.byteLength(to))]);

/** Sets a header's checksum to match its bytes. */
function summed(bytes: Buffer, at: number): Buffer {
  const header = Buffer.from(bytes.subarray(at, at + 512));
  header.write(" ".repeat(8), 148, "latin1");
  const sum = header.reduce((all, byte) => all + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return changed(bytes, at, header);
}

describe("a bundle", () => {
  test("returns its contents, has its audit checked, and can be read by tar", async () => {
    const { bytes, parts } = await made();
    const opened = openBundle(bytes, "x.tar");
    assert.deepEqual(opened.parts, parts);
    assert.deepEqual([opened.audit.ok, opened.audit.lines], [true, 4]);
    assert.deepEqual(
      [opened.manifest.harness, opened.manifest.session.title, opened.manifest.audit.lines],
      ["1.0.0", ABOUT.title, 4],
    );
    await using place = await scratch({ "out/x": "" });
    writeFileSync(place.at("b.tar"), bytes);
    execFileSync("tar", ["-xf", place.at("b.tar"), "-C", place.at("out")]);
    assert.equal(readFileSync(place.at("out/events.jsonl"), "utf8"), '{"at":1}\n');
    assert.equal(readdirSync(place.at("out")).length, 8);
  });

  test("names the changed part, whichever byte was changed", async () => {
    const { bytes } = await made();
    for (const name of ["manifest.json", "events.jsonl", "records.jsonl", "audit.jsonl", "settings.json"]) {
      const at = headerAt(bytes, name) + 512 + 3;
      refused(
        changed(bytes, at, bytes[at] === 0x21 ? "?" : "!"),
        1,
        new RegExp(`part ${name} was changed after`),
      );
    }
    refused(
      changed(bytes, headerAt(bytes, "manifest.sha256") + 512, "g"),
      1,
      /part manifest.json was changed after/,
    );
    for (let at = 0; at < bytes.length; at += 97) {
      const other = changed(bytes, at, Buffer.from([(bytes[at] ?? 0) ^ 1]));
      assert.throws(() => openBundle(other, "x.tar"), /x\.tar/, `byte ${at}`);
    }
  });

  test("with an audit rebuilt around a changed line is detected by its chain", async () => {
    const { bytes, parts } = await made();
    const audit = Buffer.from(
      parts["audit.jsonl"].toString("utf8").replace('"command":"ls"', '"command":"rm"'),
    );
    const { manifest } = openBundle(bytes, "x.tar");
    const forged = bundleOf(manifest, { ...parts, "audit.jsonl": audit });
    const { audit: verdict } = openBundle(forged, "x.tar");
    assert.equal(verdict.ok, false);
    assert.equal(verdict.broken?.line, 3);
  });

  test("that is invalid, cut, or holds anything else is refused with the reason", async () => {
    const { bytes } = await made();
    const first = headerAt(bytes, "events.jsonl");
    const seal = headerAt(bytes, "manifest.sha256");
    const named = (name: string, at = first): Buffer =>
      summed(changed(changed(bytes, at, Buffer.alloc(100)), at, name), at);
    const odd: readonly (readonly [Buffer, RegExp])[] = [
      [Buffer.alloc(0), /ends in the middle of manifest.json/],
      [Buffer.from("no archive at all".repeat(60)), /which does not belong in a bundle/],
      [bytes.subarray(0, first + 100), /ends in the middle of events.jsonl/],
      [bytes.subarray(0, bytes.length - 1024), /its end is not that of a bundle/],
      [Buffer.concat([bytes, Buffer.alloc(512)]), /its end is not that of a bundle/],
      [named("../../escape"), /contains "..\/..\/escape", which does not belong/],
      [named("/etc/passwd"), /contains "\/etc\/passwd"/],
      [named("manifest.json"), /contains "manifest.json" twice/],
      [named("audit.jsonl"), /"audit.jsonl" is out of order/],
      [summed(changed(bytes, first + 156, "2"), first), /events.jsonl is not a plain file/],
      [summed(changed(bytes, first + 156, "1"), first), /events.jsonl is not a plain file/],
      [summed(changed(bytes, first + 157, "/etc/passwd"), first), /events.jsonl is not a plain file/],
      [summed(changed(bytes, first + 124, "77777777777"), first), /ends in the middle of events.jsonl/],
      [changed(bytes, first + 512 + 20, "x"), /events.jsonl is followed by data/],
      [
        Buffer.concat([
          bytes.subarray(0, seal + 1024),
          bytes.subarray(first, first + 1024),
          Buffer.alloc(1024),
        ]),
        /contains "events.jsonl" twice/,
      ],
      [
        Buffer.concat([
          bytes.subarray(0, seal + 1024),
          named("evil").subarray(first, first + 1024),
          Buffer.alloc(1024),
        ]),
        /contains "evil", which does not belong/,
      ],
    ];
    for (const [each, said] of odd) refused(each, 2, said);
  });

  test("of another version is refused with that version", async () => {
    const { bytes } = await made();
    const at = bytes.indexOf('"version": 1');
    refused(changed(bytes, at, '"version": 2'), 2, /bundle of version 2; this harness reads version 1/);
  });
});
