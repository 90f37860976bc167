import assert from "node:assert/strict";
import test from "node:test";
import { bytesOfText, textOfBytes } from "../../../src/core/raw-data.ts";
import type { Change } from "../../../src/core/ports.ts";
import { changeListOf, type FoundChange } from "../../../src/boxes/runner/change-list.ts";
import { fc } from "../../fixtures/property.ts";

/** Few letters, so that paths share much; one of them is before the slash, one is no text. */
const name = fc
  .array(fc.constantFrom(0x61, 0x62, 0x2e, 0xff, 0xc3), { minLength: 1, maxLength: 4 })
  .map((bytes) => Buffer.from(bytes));
const what = fc.constantFrom<Change["what"]>("added", "modified", "deleted");
const kind = fc.constantFrom<Change["kind"]>("file", "link", "odd", "folder");
const tree = fc.array(fc.tuple(fc.array(name, { maxLength: 3 }), name, what, kind, fc.nat(0o7777)), {
  maxLength: 40,
});

test("whatever was found comes back whole, in the order of the bytes of its paths, as often as it is read", () => {
  fc.assert(
    fc.property(tree, (entries) => {
      const folders = new Map<string, Buffer>();
      const found = entries.map(([parts, own, is, type, mode]): FoundChange => {
        const folder = Buffer.concat(
          parts.flatMap((part, at) => (at === 0 ? [part] : [Buffer.from("/"), part])),
        );
        const key = folder.toString("latin1");
        folders.set(key, folders.get(key) ?? folder);
        return { what: is, kind: type, mode, folder: folders.get(key) ?? folder, name: own };
      });
      const wanted = found
        .map(({ folder, name: own, ...rest }) => ({
          ...rest,
          path: textOfBytes(folder.length === 0 ? own : Buffer.concat([folder, Buffer.from("/"), own])),
        }))
        .toSorted((a, b) => Buffer.compare(bytesOfText(a.path), bytesOfText(b.path)));
      const list = changeListOf(found);
      for (let times = 0; times < 2; times += 1)
        assert.deepEqual(
          [...list].map(({ path, mode, kind: type, what: is }) => ({ what: is, kind: type, mode, path })),
          wanted.map(({ path, mode, kind: type, what: is }) => ({ what: is, kind: type, mode, path })),
        );
    }),
  );
});
