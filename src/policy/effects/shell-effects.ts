/** Effects of the shell's own constructs: compound commands and redirects. */
import { isBoxed } from "../paths/path-place.ts";
import { type Arg, type FoundEffect, isGuess, type Use } from "../programs/program-model.ts";
import type { Compound, Node, Redirect, RedirectOperator } from "../shell/shell-syntax.ts";
import type { Walk } from "./call-effects.ts";
import { isPrivate, variableDoubt } from "./environment.ts";
import { joinScopes, placeOf, type Scope, withFunction, withoutVariables, withVariable } from "./scope.ts";

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
      return node.bodies.reduce((now, body) => joinScopes(now, walk.node(body, now, input)), scope);
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
    bodies.reduce((now, body) => joinScopes(now, walk.node(body, now, input)), from);
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
  const afterRound = joinScopes(before, after);
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
    return bodies.reduce((after, body) => joinScopes(after, walk.node(body, start, input)), from);
  };
  for (const value of known && !walk.crowded ? values : [null]) now = round(now, value);
  return withoutVariables(withSecondRound(before, now, (from) => round(from, null)));
}

/**
 * Words of `[[ ]]` may be arithmetic, where an operator compares numbers: arithmetic runs commands in subscripts, also
 * those in a variable's value.
 */
function testEffects({ words, span, evaluates = false }: Compound, { walk, scope }: At): Scope {
  for (const { value } of walk.args(words ?? [], scope))
    if (/\[.*[$`]/.test(value) || (evaluates && !/^-?\d+$/.test(value)))
      walk.doubt("shell.expansion", "[[", span, !evaluates);
  return scope;
}

function definitionEffects(node: Compound, { walk, scope }: At): Scope {
  const name = node.name ?? "";
  // The body is judged below; a call of the function means no program of that name.
  walk.doubt("shell.function", name, node.span, walk.world.models.find(name) === undefined);
  if (node.bodies.some((body) => callsItself(body, name, false))) walk.add({ kind: "bomb" }, name, node.span);
  const within = withFunction(withoutVariables(scope), name);
  for (const body of node.bodies) walk.inWritten(body, within);
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

interface RedirectAt extends At {
  /** The program or construct that is redirected. */
  readonly by: string;
}

/** Adds the effects of redirects. Returns what stdin is after them. */
export function redirectEffects(redirects: readonly Redirect[], at: RedirectAt): Use["input"] {
  let { input } = at;
  for (const redirect of redirects) input = redirectEffect(redirect, at) ?? input;
  return redirects.length > 1 && readsItsOutput(redirects, at) ? "network" : input;
}

/** `>& /dev/tcp/HOST/PORT 0>&1`: stdin is the connection that the output goes to. */
const readsItsOutput = (redirects: readonly Redirect[], { walk, scope }: RedirectAt): boolean =>
  redirects.some(({ descriptor, operator }) => descriptor === 0 && operator.endsWith("&")) &&
  redirects.some(({ target }) => walk.args([target], scope).some(isSocket));

function redirectEffect(redirect: Redirect, at: RedirectAt): Use["input"] | null {
  const { operator, descriptor, target, span } = redirect;
  const { walk, scope } = at;
  const [arg, ...more] = walk.args([target], scope);
  if (operator === "<<" || operator === "<<<") return feedsStdin(redirect) ? inputFrom(arg) : null;
  if (typeof descriptor === "string") walk.doubt("shell.expansion", `{${descriptor}}`, span);
  if (arg === undefined || more.length > 0 || isGuess(arg)) walk.doubt("word.dynamic", operator, span);
  if (arg !== undefined && !isDescriptor(operator, arg)) return openEffects(redirect, operator, arg, at);
  return arg !== undefined && operator === "<&" ? fromConnection(redirect, arg, at) : null;
}

/** `<&3`, where an earlier command opened a connection under a number. */
function fromConnection(redirect: Redirect, { value }: Arg, { walk, by }: RedirectAt): Use["input"] | null {
  const { connection } = walk;
  if (connection === null || !/^(?:[3-9]|\d{2,})$/.test(value)) return null;
  walk.add({ kind: "network", hosts: connection }, by, redirect.span);
  return feedsStdin(redirect) ? "network" : null;
}

const feedsStdin = ({ descriptor }: Redirect): boolean => descriptor === null || descriptor === 0;

/** A file, or a connection that the shell opens. */
function openEffects(
  redirect: Redirect,
  operator: keyof typeof DIRECTIONS,
  arg: Arg,
  at: RedirectAt,
): Use["input"] | null {
  const [reads, writes] = DIRECTIONS[operator];
  const socket = isSocket(arg);
  const found = socket
    ? [{ kind: "network", hosts: hostOf(arg) } as const]
    : filesOf(arg, operator, at.scope);
  for (const each of found) at.walk.add(each, at.by, redirect.span);
  if (socket && redirect.descriptor !== null && !feedsStdin(redirect)) at.walk.connection = hostOf(arg);
  if (socket) return reads ? "network" : null;
  return reads && !writes && feedsStdin(redirect)
    ? (arg.feed ?? (isInside(arg, at) ? "project" : "unknown"))
    : null;
}

/** A plain file of the workspace, or a temporary one. */
function isInside(arg: Arg, { scope, walk }: RedirectAt): boolean {
  return scope.folders.every((folder) => {
    const path = placeOf(arg, folder);
    return path !== null && isBoxed(path, walk.world.workspace);
  });
}

const DIRECTIONS: Readonly<
  Record<Exclude<RedirectOperator, "<<" | "<<<">, readonly [reads: boolean, writes: boolean]>
> = {
  "<": [true, false],
  "<&": [true, false],
  "<>": [true, true],
  ">": [false, true],
  ">>": [false, true],
  ">|": [false, true],
  ">&": [false, true],
  "&>": [false, true],
  "&>>": [false, true],
};

/** `2>&1`, `<&-`: duplicates or closes an open descriptor. */
const isDescriptor = (operator: RedirectOperator, { kind, value }: Arg): boolean =>
  (operator === ">&" || operator === "<&") && kind === "literal" && /^\d*-?$/.test(value);

function filesOf(arg: Arg, operator: keyof typeof DIRECTIONS, { folders }: Scope): readonly FoundEffect[] {
  const [reads, writes] = DIRECTIONS[operator];
  return folders.flatMap((folder) => {
    const path = placeOf(arg, folder);
    return [
      ...(reads ? [{ kind: "read", path } as const] : []),
      ...(writes ? [{ kind: "write", path } as const] : []),
    ];
  });
}

/** Paths with these names are connections that the shell opens itself. */
const isSocket = ({ value }: Arg): boolean => /^\/dev\/(?:tcp|udp)\//.test(value);

function hostOf({ value }: Arg): readonly string[] {
  const host = value.split("/")[3];
  return host === undefined || host === "" ? [] : [host];
}

function inputFrom(arg: Arg | undefined): Use["input"] {
  if (arg === undefined) return { text: "", span: [0, 0] };
  if (arg.kind === "literal") return { text: arg.value, span: arg.span };
  return arg.feed ?? "unknown";
}
