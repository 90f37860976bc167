import { type Arg, type Found, isGuess, type Use } from "../programs/program-model.ts";
import type { Redirect, RedirectOperator } from "../shell/shell-syntax.ts";
import type { Walk } from "./walk.ts";
import type { Effect } from "./effect.ts";
import { placeOf, type Scope } from "./scope.ts";
import { isBoxed } from "./local-tools.ts";

interface At {
  readonly walk: Walk;
  readonly scope: Scope;
  readonly by: string;
  readonly input: Use["input"];
}

/** Adds the effects of redirects. Returns what stdin is after them. */
export function redirectEffects(redirects: readonly Redirect[], at: At): Use["input"] {
  let { input } = at;
  for (const redirect of redirects) input = redirectEffect(redirect, at) ?? input;
  return input;
}

function redirectEffect(redirect: Redirect, at: At): Use["input"] | null {
  const { operator, descriptor, target, span } = redirect;
  const { walk, scope } = at;
  const [arg, ...more] = walk.args([target], scope);
  if (operator === "<<" || operator === "<<<") return feedsStdin(redirect) ? inputFrom(arg) : null;
  if (typeof descriptor === "string") walk.doubt("shell.expansion", `{${descriptor}}`, span);
  if (arg === undefined || more.length > 0 || isGuess(arg)) walk.doubt("word.dynamic", operator, span);
  if (arg !== undefined && !isDescriptor(operator, arg)) return openEffects(redirect, operator, arg, at);
  return null;
}

const feedsStdin = ({ descriptor }: Redirect): boolean => descriptor === null || descriptor === 0;

/** A file, or a connection that the shell opens. */
function openEffects(
  redirect: Redirect,
  operator: keyof typeof DIRECTIONS,
  arg: Arg,
  at: At,
): Use["input"] | null {
  const [reads, writes] = DIRECTIONS[operator];
  const socket = isSocket(arg);
  const found = socket
    ? [{ kind: "network", hosts: hostOf(arg) } as const]
    : filesOf(arg, operator, at.scope);
  for (const each of found) at.walk.add(each, at.by, redirect.span);
  if (socket) return reads ? "network" : null;
  return reads && !writes && feedsStdin(redirect)
    ? (arg.feed ?? (isInside(arg, at) ? "project" : "unknown"))
    : null;
}

/** A plain file of the workspace, or a temporary one. */
function isInside(arg: Arg, { scope, walk }: At): boolean {
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

function filesOf(arg: Arg, operator: keyof typeof DIRECTIONS, { folders }: Scope): readonly Found[] {
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

/** Code in a file that an earlier command of the text downloaded is fetched code. */
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
