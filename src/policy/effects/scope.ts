import { resolvePath } from "../paths/normal-path.ts";
import { type Arg, UNKNOWN } from "../programs/program-model.ts";
import type { Place } from "./effect.ts";

/** State that earlier commands leave for later ones. Immutable. */
export interface Scope {
  /** Folders in which the command may run: several after a `cd` that may have failed. Null among them: any folder. */
  readonly folders: readonly Place[];
  /** Variables with known values. */
  readonly variables: ReadonlyMap<string, Arg>;
  readonly functions: ReadonlySet<string>;
}

/** The value assumed for a piece of a word. The true value may differ, but leads to the same places. */
export type Assumed = Pick<Arg, "kind" | "value">;

const MAX_FOLDERS = 4;

/** Joins the scopes of two ways through the script. */
export function either(a: Scope, b: Scope): Scope {
  if (a === b) return a;
  return {
    folders: joined(a.folders, b.folders),
    variables: a.variables === b.variables ? a.variables : common(a.variables, b.variables),
    functions: a.functions === b.functions ? a.functions : new Set([...a.functions, ...b.functions]),
  };
}

function joined(a: readonly Place[], b: readonly Place[]): readonly Place[] {
  if (a === b) return a;
  const all = [...new Set([...a, ...b])];
  return all.length > MAX_FOLDERS || all.includes(null) ? [null] : all;
}

/** A variable that differs between the two ways becomes a guess: enough to find dangers, never enough for an allow. */
function common(a: Scope["variables"], b: Scope["variables"]): Scope["variables"] {
  const both = new Map<string, Arg>();
  for (const [name, arg] of [...b, ...a]) {
    const same = a.get(name)?.value === b.get(name)?.value && a.get(name)?.kind === b.get(name)?.kind;
    both.set(name, same ? arg : { ...arg, kind: "dynamic" });
  }
  return both;
}

export const moved = (scope: Scope, folders: readonly Place[]): Scope => ({
  ...scope,
  folders: joined(folders, []),
});

export function withVariable(scope: Scope, name: string, value: Arg | null): Scope {
  const variables = new Map(scope.variables);
  if (value === null) variables.delete(name);
  else variables.set(name, value);
  return { ...scope, variables };
}

export const withoutVariables = (scope: Scope): Scope => ({ ...scope, variables: new Map() });

export const withFunction = (scope: Scope, name: string): Scope => ({
  ...scope,
  functions: new Set([...scope.functions, name]),
});

/** Longest path that any supported system accepts. */
const MAX_LENGTH = 4096;

/** Absolute path of an argument, relative to a folder. A pattern keeps its special characters. */
export function placeOf({ kind, value }: Arg, folder: Place): Place {
  if (kind === "dynamic" && (value.includes(UNKNOWN) || value === "")) return null;
  if (value.length > MAX_LENGTH) return null;
  if (value.startsWith("/")) return resolvePath("/", value);
  return folder === null ? null : resolvePath(folder, value);
}
