import { ARCHIVES } from "./archive-programs.ts";
import { COMPRESS } from "./compress-programs.ts";
import { LANGUAGES } from "./data-programs.ts";
import { CHANGES } from "./file-changes.ts";
import { LISTING, PIECES } from "./file-listing.ts";
import { GIT } from "./git-program.ts";
import { NETWORK } from "./network-programs.ts";
import type { Model } from "./program-model.ts";
import { PROJECT } from "./project-programs.ts";
import { SEARCHING } from "./search-programs.ts";
import { BUILTINS } from "./shell-builtins.ts";
import { ESCAPING_PROGRAMS, INTERPRETERS, SHELLS } from "./shell-programs.ts";
import { FACTS, MACHINE, PROCESSES } from "./system-programs.ts";
import { BYTES, COMPARE, FIELDS, PRINTING, READERS } from "./text-programs.ts";
import { VERSION_CONTROL } from "./vcs-programs.ts";
import { WRAPPERS } from "./wrapper-programs.ts";

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
