import type { Effect } from "./effect.ts";

/** What runs later, by a name or at the end, runs where the shell is then: nobody knows where, once it left the workspace. */
export function withLater(effects: readonly Effect[], strays: boolean): readonly Effect[] {
  if (!strays) return effects;
  return effects.map((effect) => {
    if (effect.kind !== "unknown" || !LATER.has(effect.doubt) || effect.inside !== true) return effect;
    const { inside: _, ...open } = effect;
    return open;
  });
}

const LATER: ReadonlySet<string> = new Set(["shell.builtin", "shell.function"]);
