import { ARCHIVES } from "./archives/archives.ts";
import { COMPRESS } from "./archives/compress.ts";
import { CHANGES } from "./files/changes.ts";
import { LISTING } from "./files/listing.ts";
import { PIECES } from "./files/pieces.ts";
import type { Model } from "./model.ts";
import { SHELLS } from "./shells.ts";
import { FACTS } from "./system/facts.ts";
import { MACHINE } from "./system/machine.ts";
import { PROCESSES } from "./system/processes.ts";
import { BYTES } from "./text/bytes.ts";
import { COMPARE } from "./text/compare.ts";
import { FIELDS } from "./text/fields.ts";
import { PRINTING } from "./text/printing.ts";
import { READERS } from "./text/readers.ts";
import { WRAPPERS } from "./wrappers.ts";

/** Every program that is known, by name. A name stands in one group only. */
export const PROGRAMS: ReadonlyMap<string, Model> = grouped([
  ARCHIVES,
  BYTES,
  CHANGES,
  COMPARE,
  COMPRESS,
  FACTS,
  FIELDS,
  LISTING,
  MACHINE,
  PIECES,
  PRINTING,
  PROCESSES,
  READERS,
  SHELLS,
  WRAPPERS,
]);

function grouped(groups: readonly Readonly<Record<string, Model>>[]): ReadonlyMap<string, Model> {
  const all = new Map<string, Model>();
  for (const group of groups)
    for (const [name, model] of Object.entries(group)) {
      if (all.has(name)) throw new Error(`the program ${name} stands in two groups`);
      all.set(name, model);
    }
  return all;
}
