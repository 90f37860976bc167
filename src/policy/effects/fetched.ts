import type { Effect } from "./effect.ts";

/** Code of a file that an earlier command of the same text downloaded is fetched code. */
export function withFetched(effects: readonly Effect[]): readonly Effect[] {
  if (!effects.some(({ kind }) => kind === "network")) return effects;
  const online = new Set(effects.filter(({ kind }) => kind === "network").map(({ call }) => call));
  const files = new Set(
    effects.flatMap((effect) =>
      effect.kind === "write" && effect.path !== null && online.has(effect.call) ? [effect.path] : [],
    ),
  );
  return effects.map((effect) =>
    effect.kind === "code" && effect.path !== null && files.has(effect.path)
      ? { ...effect, from: "fetched" }
      : effect,
  );
}
