import { INSPECTION } from "./inspection.ts";
import type { Model } from "./model.ts";
import { PROJECT } from "./project/project.ts";
import { SHELLS } from "./shells.ts";
import { WRAPPERS } from "./wrappers.ts";

/** Every program that is known, by name. A name stands in one group only. */
export const PROGRAMS: ReadonlyMap<string, Model> = grouped([INSPECTION, ...PROJECT, SHELLS, WRAPPERS]);
function grouped(groups: readonly Readonly<Record<string, Model>>[]): ReadonlyMap<string, Model> {
  const all = new Map<string, Model>();
  for (const group of groups)
    for (const [name, model] of Object.entries(group)) {
      if (all.has(name)) throw new Error(`the program ${name} stands in two groups`);
      all.set(name, model);
    }
  return all;
}
