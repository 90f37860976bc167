import { ARCHIVES } from "./archives/archives.ts";
import { COMPRESS } from "./archives/compress.ts";
import { CHANGES } from "./files/changes.ts";
import { LISTING } from "./files/listing.ts";
import { PIECES } from "./files/pieces.ts";
import { GIT } from "./git/git.ts";
import { LANGUAGES } from "./languages/programs.ts";
import type { Model } from "./model.ts";
import { NETWORK } from "./network/group.ts";
import { PROJECT } from "./project/project.ts";
import { SEARCHING } from "./search/programs.ts";
import { BUILTINS } from "./shell/builtins.ts";
import { ESCAPING_PROGRAMS } from "./shell/escaping.ts";
import { INTERPRETERS } from "./shell/interpreters.ts";
import { SHELLS } from "./shell/shells.ts";
import { VERSION_CONTROL } from "./vcs/vcs.ts";
import { WRAPPERS } from "./shell/wrappers.ts";
import { FACTS } from "./system/facts.ts";
import { MACHINE } from "./system/machine.ts";
import { PROCESSES } from "./system/processes.ts";
import { BYTES } from "./text/bytes.ts";
import { COMPARE } from "./text/compare.ts";
import { FIELDS } from "./text/fields.ts";
import { PRINTING } from "./text/printing.ts";
import { READERS } from "./text/readers.ts";

/** Every program that is known, by name. A name stands in one group only. */
export const PROGRAMS: ReadonlyMap<string, Model> = grouped([
  GIT,
  VERSION_CONTROL,
  SEARCHING,
  LANGUAGES,
  BUILTINS,
  SHELLS,
  WRAPPERS,
  INTERPRETERS,
  ESCAPING_PROGRAMS,
  ...NETWORK,
  LISTING,
  CHANGES,
  PIECES,
  READERS,
  FIELDS,
  COMPARE,
  BYTES,
  PRINTING,
  FACTS,
  PROCESSES,
  MACHINE,
  ARCHIVES,
  COMPRESS,
  ...PROJECT,
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
