import type { Use } from "../models/model.ts";
import type { Pipeline } from "../shell/syntax.ts";
import { echoed } from "./input.ts";
import { isFilter, isXargs } from "./names.ts";
import type { Scope } from "./scope.ts";
import type { Walk } from "./walk.ts";

interface At {
  readonly walk: Walk;
  readonly scope: Scope;
  readonly input: Use["input"];
}

/** Each part in a shell of its own, fed by the one before it. */
export function pipelineEffects({ parts }: Pipeline, { walk, scope, input }: At): void {
  const { assumptions } = walk.world;
  let fed = input;
  for (const [index, part] of parts.entries()) {
    const source = walk.apart(part, scope, fed);
    const next = parts[index + 1];
    const passes = next !== undefined && (isXargs(next) || isFilter(next));
    const names = passes ? assumptions?.namesFrom(part, fed, (words) => walk.args(words, scope)) : null;
    fed = source === "network" || fed === "network" ? "network" : (names ?? echoed(part) ?? "unknown");
  }
  walk.assumable ||= parts.some(isXargs);
}
