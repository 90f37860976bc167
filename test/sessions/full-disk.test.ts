import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import path from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import type { AuditVerdict } from "../../src/core/session.ts";
import { scratch } from "../fixtures/scratch.ts";

const fixture = (name: string): string => path.join(import.meta.dirname, "../fixtures", name);
/** File systems of our own need a mount namespace. */
const skip =
  spawnSync("unshare", ["-rm", "true"]).status === 0
    ? false
    : "no mount namespace may be made here (unshare -rm)";

test(
  "a full disk is reported, and the chain is valid before and after there is room again",
  { skip },
  async () => {
    await using place = await scratch({ "state/audit/x": "" });
    const script =
      'mount -t tmpfs -o size=64k none "$1/state/audit"; "$2" "$3" "$1/state" "mount -o remount,size=256k $1/state/audit"';
    const words = [
      "-rm",
      "sh",
      "-ec",
      script,
      "sh",
      place.path,
      process.execPath,
      fixture("audit-on-full-disk.ts"),
    ];
    const { stdout } = await promisify(execFile)("unshare", words);
    const { taken, failures, full, after } = JSON.parse(stdout) as {
      taken: number;
      failures: readonly (readonly [number, string, string])[];
      full: AuditVerdict;
      after: AuditVerdict;
    };
    assert.ok(taken > 10, stdout);
    for (const [exit, message, remedy] of failures) {
      assert.match(message, /no space is left on the disk .*nothing runs without being recorded/);
      assert.deepEqual([exit, remedy], [1, `df -h ${place.at("state/audit")}`]);
    }
    assert.ok(full.ok && after.ok, stdout);
    assert.ok(after.lines > taken + 1);
  },
);

test(
  "a run whose database is full shows nothing that is not stored, and its audit stays valid",
  { skip },
  async () => {
    await using place = await scratch({ "state/audit/x": "", "elsewhere/x": "" });
    const script =
      'mount -t tmpfs -o size=400k none "$1/state"; mkdir "$1/state/audit"; mount --bind "$1/elsewhere" "$1/state/audit"; "$2" "$3" "$1/state" "mount -o remount,size=8m $1/state"';
    const words = ["-rm", "sh", "-ec", script, "sh", place.path, process.execPath];
    const { stdout } = await promisify(execFile)("unshare", [...words, fixture("store-run-on-full-disk.ts")]);
    const { shown, stored, failures, full, after } = JSON.parse(stdout) as {
      shown: number;
      stored: number;
      failures: readonly (readonly [number, string])[];
      full: AuditVerdict;
      after: AuditVerdict;
    };
    assert.ok(shown > 10, stdout);
    assert.equal(stored, shown);
    for (const [exit, message] of failures) {
      assert.match(message, /no space is left on the disk/);
      assert.equal(exit, 1);
    }
    assert.ok(full.ok && after.ok, stdout);
    // The lines of what was not stored stay, and the next one says so.
    assert.ok(after.lines > shown + 1, stdout);
    assert.ok(
      after.notes.some((note) => note.includes("continues after a kill or a failed write")),
      stdout,
    );
  },
);
