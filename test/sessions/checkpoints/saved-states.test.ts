import assert from "node:assert/strict";
import { readdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { EXIT, HarnessError } from "../../../src/core/errors.ts";
import { copySavedState, savedStates } from "../../../src/sessions/checkpoints/saved-states.ts";
import { type KeptRun, keptRun } from "../../fixtures/kept-run.ts";
import { pictureOf } from "../../fixtures/tree-picture.ts";

/** The states that runs saved, without the steps of their session. */

const statesOf = ({ place }: KeptRun, workspace?: string) =>
  savedStates(place.at("state"), { workspace, warn: assert.fail });

/** A folder with odd files, and a call that changes some of them. */
async function changed(): Promise<KeptRun & { readonly before: ReturnType<typeof pictureOf> }> {
  const kept = await keptRun({ "a.txt": "old\n", "sub/b\nc": "kept\n", "--x": "dash\n" });
  symlinkSync("nowhere", kept.place.at("work/link"));
  const before = pictureOf(kept.root);
  await kept.run(() => {
    writeFileSync(kept.place.at("work/a.txt"), "new\n");
    rmSync(kept.place.at("work/sub"), { recursive: true });
  });
  return { ...kept, before };
}

test("saved states are listed with what changed, and copied into a new folder as they were", async () => {
  await using kept = await changed();
  const [last, first] = statesOf(kept);
  assert.deepEqual(first?.changed, null);
  assert.deepEqual(last?.changed, ["a.txt", "sub", "sub/b\nc"]);
  assert.deepEqual([first?.session, first?.workspace], ["s", kept.root]);
  const out = kept.place.at("new/copy");
  const copied = copySavedState(kept.place.at("state"), first?.state ?? "", out);
  assert.deepEqual([copied.paths, copied.left], [5, []]);
  const { "": top, ...files } = pictureOf(out);
  const { "": _, ...wanted } = kept.before;
  assert.deepEqual(files, wanted);
  assert.match(top ?? "", /^folder/);
});

test("the folder itself may be gone, and others are not listed unless all are wanted", async () => {
  await using kept = await changed();
  renameSync(kept.root, kept.place.at("moved"));
  assert.equal(statesOf(kept, kept.root).length, 2);
  assert.equal(statesOf(kept, "/elsewhere").length, 0);
  assert.equal(statesOf(kept).length, 2);
});

test("a file whose content is damaged is named and left out, and a damaged state is named and not listed", async () => {
  await using kept = await changed();
  const [last, first] = statesOf(kept);
  const [store = ""] = readdirSync(kept.place.at("state/checkpoints"));
  const at = (...names: readonly string[]): string =>
    path.join(kept.place.at("state/checkpoints"), store, ...names);
  for (const name of readdirSync(at("packs"))) if (name.endsWith(".pack")) truncateSync(at("packs", name), 5);
  const { left } = copySavedState(kept.place.at("state"), first?.state ?? "", kept.place.at("copy"));
  assert.ok(left.some(({ path: each, reason }) => each === "a.txt" && /no longer stored/.test(reason)));
  writeFileSync(at("trees", last?.state ?? ""), "garbage");
  const warnings: string[] = [];
  const rest = savedStates(kept.place.at("state"), { warn: (text) => void warnings.push(text) });
  assert.deepEqual(
    rest.map(({ state }) => state),
    [first?.state],
  );
  assert.match(warnings.join(), /gone or damaged/);
});

const isUsage = (thrown: unknown): boolean => thrown instanceof HarnessError && thrown.exit === EXIT.usage;

test("nothing is written over, and an unknown state is an error", async () => {
  await using kept = await changed();
  const [last] = statesOf(kept);
  const copy = (state: string, out: string) => () =>
    copySavedState(kept.place.at("state"), state, kept.place.at(out));
  assert.throws(copy(last?.state ?? "", "work"), isUsage);
  assert.throws(copy("s.1", "fresh"), isUsage);
  assert.ok(!readdirSync(kept.place.path).includes("fresh"));
});
