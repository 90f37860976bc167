import type { Arg, Use } from "../programs/program-model.ts";
import type { Compound, Node } from "../shell/shell-syntax.ts";
import type { Walk } from "./walk.ts";
import { isPrivate, variableDoubt } from "./environment.ts";
import { either, type Scope, withFunction, withoutVariables, withVariable } from "./scope.ts";

interface At {
  readonly walk: Walk;
  readonly scope: Scope;
  readonly input: Use["input"];
}

/** Judges every branch of a compound; the scope after it covers all branches. */
export function compoundEffects(node: Compound, at: At): Scope {
  const { walk, scope, input } = at;
  switch (node.what) {
    case "group":
      return node.bodies.reduce((now, body) => walk.node(body, now, input), scope);
    case "not":
      return node.bodies.reduce((now, body) => either(now, walk.node(body, now, input)), scope);
    case "subshell":
      for (const body of node.bodies) walk.inSubshell(body, scope, input);
      return scope;
    case "for":
    case "select":
      return loopEffects(node, at);
    case "test":
      return testEffects(node, at);
    case "function":
      return definitionEffects(node, at);
    case "coproc":
      walk.doubt("shell.coproc", "coproc", node.span);
      for (const body of node.bodies) walk.inSubshell(body, scope, "unknown");
      return scope;
    case "arithmetic":
      walk.doubt("shell.expansion", "((", node.span);
      for (const body of node.bodies) walk.inSubshell(body, scope, input);
      return withoutVariables(scope);
    case "case":
      walk.args(node.words ?? [], scope);
      return branchEffects(node, at);
    case "if":
    case "while":
    case "until":
      return branchEffects(node, at);
  }
}

/** Judges conditions and branches as if they ran in any order and any number of times. */
function branchEffects({ what, bodies, span }: Compound, { walk, scope, input }: At): Scope {
  const repeats = what === "while" || what === "until";
  if (repeats && isUnbounded(bodies)) walk.doubt("shell.endless", what, span);
  const before = repeats ? withoutVariables(scope) : scope;
  const once = (from: Scope): Scope =>
    bodies.reduce((now, body) => either(now, walk.node(body, now, input)), from);
  const after = once(before);
  return repeats ? withSecondRound(before, after, once) : after;
}

/**
 * Whether any number of rounds may leave processes behind. A loop that reads has only as many rounds as there are
 * lines.
 */
function isUnbounded([condition, ...rest]: readonly Node[]): boolean {
  return rest.some(leavesBehind) && (condition === undefined || !READING.has(firstName(condition)));
}

const READING: ReadonlySet<string> = new Set(["read"]);

/** Whether a command is put into the background, at any depth outside of functions. */
function leavesBehind(node: Node): boolean {
  switch (node.kind) {
    case "simple":
      return false;
    case "pipeline":
      return node.parts.some(leavesBehind);
    case "list":
      return node.items.some(({ node: item, then }) => then === "&" || leavesBehind(item));
    case "compound":
      return node.what !== "function" && node.bodies.some(leavesBehind);
  }
}

/**
 * The command's name; empty for a list of several commands, and for a name that is not plain text. Assignments before
 * the name do not count.
 */
function firstName(node: Node): string {
  if (node.kind === "list") return node.items.length === 1 ? firstName(node.items[0]?.node ?? node) : "";
  const [piece] = node.kind === "simple" ? (node.words[0]?.pieces ?? []) : [];
  return piece?.kind === "text" ? piece.text : "";
}

/** A loop that changes its folder may start its second round elsewhere, so that round is judged too. */
function withSecondRound(before: Scope, after: Scope, again: (from: Scope) => Scope): Scope {
  const afterRound = either(before, after);
  return afterRound.folders === before.folders || afterRound.folders.length === before.folders.length
    ? afterRound
    : again({ ...afterRound, folders: [null] });
}

const MAX_ROUNDS = 16;

function loopEffects(node: Compound, { walk, scope, input }: At): Scope {
  const { name, words, bodies } = node;
  // `for ((…))` is arithmetic.
  if (name === null) walk.doubt("shell.expansion", "((", node.span);
  else if (!isPrivate(name)) walk.doubt(variableDoubt(name), name, node.span);
  const values: readonly Arg[] = words === null ? [] : walk.args(words, scope);
  const known =
    values.length > 0 && values.length <= MAX_ROUNDS && values.every(({ kind }) => kind !== "dynamic");
  const before = withoutVariables(scope);
  let now = before;
  const round = (from: Scope, value: Arg | null): Scope => {
    const start = name === null ? from : withVariable(from, name, value);
    return bodies.reduce((after, body) => either(after, walk.node(body, start, input)), from);
  };
  for (const value of known && !walk.crowded ? values : [null]) now = round(now, value);
  return withoutVariables(withSecondRound(before, now, (from) => round(from, null)));
}

/** Words of `[[ ]]` may be arithmetic, and arithmetic runs commands in subscripts, also those in a variable's value. */
function testEffects({ words, span, evaluates = false }: Compound, { walk, scope }: At): Scope {
  for (const { kind, value } of walk.args(words ?? [], scope))
    if (kind === "dynamic" || /\[.*[$`]/.test(value) || (evaluates && !/^-?\d+$/.test(value)))
      walk.doubt("shell.expansion", "[[", span, !evaluates);
  return scope;
}

function definitionEffects(node: Compound, { walk, scope }: At): Scope {
  const name = node.name ?? "";
  // The body is judged below; a call of the function means no program of that name.
  walk.doubt("shell.function", name, node.span, walk.world.models.find(name) === undefined);
  if (node.bodies.some((body) => callsItself(body, name, false))) walk.add({ kind: "bomb" }, name, node.span);
  const within = withFunction(withoutVariables(scope), name);
  for (const body of node.bodies) walk.inSubshell(body, within);
  return within;
}

/** A call of itself in a pipe or in the background: a fork bomb. */
function callsItself(node: Node, name: string, apart: boolean): boolean {
  switch (node.kind) {
    case "simple": {
      const [piece] = node.words[0]?.pieces ?? [];
      return apart && piece?.kind === "text" && piece.text === name;
    }
    case "pipeline":
      return node.parts.some((part) => callsItself(part, name, true));
    case "list":
      return node.items.some(({ node: item, then }) => callsItself(item, name, apart || then === "&"));
    case "compound":
      return node.bodies.some((body) => callsItself(body, name, apart));
  }
}
