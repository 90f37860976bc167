import { INSPECTION } from "./inspection.ts";
import type { Model } from "./model.ts";
import { NETWORK } from "./network/group.ts";
import { BUILTINS } from "./shell/builtins.ts";
import { ESCAPING_PROGRAMS } from "./shell/escaping.ts";
import { INTERPRETERS } from "./shell/interpreters.ts";
import { SHELLS } from "./shell/shells.ts";
import { WRAPPERS } from "./shell/wrappers.ts";

/** Every program that is known, by name. A name stands in one group only. */
export const PROGRAMS: ReadonlyMap<string, Model> = grouped([
  INSPECTION,
  BUILTINS,
  SHELLS,
  WRAPPERS,
  INTERPRETERS,
  ESCAPING_PROGRAMS,
  ...NETWORK,
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
