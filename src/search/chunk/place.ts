import type { Node } from "web-tree-sitter";
import type { ChunkKind } from "../words.ts";
import type { Rule } from "./rules/rule.ts";

/** Where the walk is. */
export interface Place {
  /** The names around, with a dot between. */
  readonly scope: string;
  /** What undeclared parts here are called. */
  readonly names: readonly string[];
  readonly kind: ChunkKind;
  /** Directly in a class, so that a function is a method. */
  readonly members: boolean;
  /** In a function: only looked into because it is too big. */
  readonly deep: boolean;
  readonly depth: number;
}

export const TOP: Place = { scope: "", names: [], kind: "code", members: false, deep: false, depth: 0 };

interface Declared {
  readonly kind: ChunkKind;
  /** The kind that its lines have: what is set inside of a function is a step of it. */
  readonly shown: ChunkKind;
  readonly declared: readonly string[];
}

/** What a node declares at its place. */
export function declaredBy(node: Node, rule: Rule, place: Place): Declared {
  const told = rule.kindOf?.(node) ?? rule.kind;
  const kind = told === "function" && place.members ? "method" : told;
  if (place.deep && kind === "code") return { kind, shown: place.kind, declared: [] };
  return { kind, shown: kind, declared: rule.names(node).map((name) => called(name, rule, place)) };
}

/** A name with those around it. A constructor is called like its class, and a struct like its typedef. */
function called(name: string, rule: Rule, { scope }: Place): string {
  if (scope === "" || rule.free === true) return name;
  return scope === name || scope.endsWith(`.${name}`) ? scope : `${scope}.${name}`;
}
