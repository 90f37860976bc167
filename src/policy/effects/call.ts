import { type Arg, type Found, isGuess, type Model, UNKNOWN, type Use } from "../models/model.ts";
import type { Surroundings } from "../models/use.ts";
import type { Span } from "../shell/syntax.ts";
import type { Effect, Place } from "./effect.ts";
import { isTame } from "./environment-values.ts";
import { placeOf } from "./place.ts";
import { isTemp } from "../paths/system.ts";
import { moved, type Scope, withoutVariables } from "./scope.ts";
import { shellEffects } from "./shell-text.ts";
import { isLocalTool, settles } from "./tools.ts";
import type { Walk } from "./walk.ts";

export interface CallAt {
  readonly walk: Walk;
  readonly scope: Scope;
  readonly input: Use["input"];
  readonly span: Span;
}

export type Words = readonly [Arg, ...Arg[]];

/** One command with its words. Returns what is true after it. */
export function callEffects(words: Words, at: CallAt): Scope {
  const { walk, scope } = at;
  const [name] = words;
  // A function of the text itself: its body was judged where it stands.
  if (name.kind === "literal" && scope.functions.has(name.value)) return withoutVariables(scope);
  if (name.kind !== "literal") unclear(name, walk);
  maybeNothing(words, at);
  for (const word of words) if (isGuess(word)) walk.doubt("word.dynamic", word.value, word.span);
  const [program, trusted] = programOf(name.value);
  const model = walk.world.models.find(program);
  if (!trusted) elsewhere(name, at);
  else if (model === undefined && !name.value.includes(UNKNOWN))
    walk.doubt("command.unknown", name.value, name.span, isLocal(program, words, at));
  if (model !== undefined) perFolder(model, words, at);
  const next = trusted ? after(program, words, scope) : scope;
  if (next.folders !== scope.folders) walk.went(next.folders);
  return next;
}

function unclear({ value, span, feed }: Arg, walk: Walk): void {
  walk.doubt("word.dynamic", value, span);
  if (feed === "network") walk.add({ kind: "code", from: "fetched", path: null }, value, span);
}

/** A name that may be no word at all: then the next one is the name, and its dangers are looked for. */
function maybeNothing([name, next, ...rest]: Words, at: CallAt): void {
  if (name.loose !== true || next?.kind !== "literal" || next.value.startsWith("-")) return;
  at.walk.effects.push(...nested([next, ...rest], at));
}

const SYSTEM = new Set(["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"]);

/** The name to look up, and whether that is the program which runs. */
export function programOf(value: string): readonly [name: string, trusted: boolean] {
  const slash = value.lastIndexOf("/");
  if (slash === -1) return [value, true];
  return [value.slice(slash + 1), SYSTEM.has(value.slice(0, slash))];
}

/** A program by its path: a file of the project, or one that nobody knows. */
function elsewhere(name: Arg, { walk, scope }: CallAt): void {
  for (const folder of scope.folders) {
    const path = placeOf(name, folder);
    const inside = path !== null && path.startsWith(`${walk.world.workspace}/`);
    if (inside) walk.add({ kind: "code", from: "project", path }, name.value, name.span);
    else walk.doubt("command.elsewhere", name.value, name.span, path !== null && isTemp(path));
  }
}

function perFolder(model: Model, words: Words, at: CallAt): void {
  const { walk, scope } = at;
  const [{ value }, ...args] = words;
  const [program] = programOf(value);
  const seen = new Set<string>();
  for (const folder of scope.folders) {
    const found = walk.world.models.effects(model, words, surroundings(folder, at));
    for (const each of found) {
      if (scope.folders.length > 1) {
        const key = JSON.stringify(each);
        if (seen.has(key)) continue;
        seen.add(key);
      }
      const settled = isSettled(each, { program, args }, { folder, workspace: walk.world.workspace });
      walk.add(settled ? { ...each, inside: true } : each, value, at.span);
    }
  }
}

/** A doubt that the box answers. */
const isSettled = (
  found: Found,
  { program, args }: { readonly program: string; readonly args: readonly Arg[] },
  at: { readonly folder: Place; readonly workspace: string },
): found is Extract<Found, { readonly kind: "unknown" }> =>
  found.kind === "unknown" && found.inside !== true && settles(program, args, found, at);

const isLocal = (program: string, [, ...args]: Words, { walk, scope }: CallAt): boolean =>
  scope.folders.every((folder) => isLocalTool(program, args, { folder, workspace: walk.world.workspace }));

function surroundings(folder: Place, at: CallAt): Surroundings {
  return {
    folder,
    home: at.walk.world.home,
    input: at.input,
    place: placeOf,
    tame: (name, value, folder) =>
      isTame(name, value, { folders: [folder], workspace: at.walk.world.workspace }),
    command: ([first, ...rest], { folder, input }) =>
      first === undefined ? [] : nested([first, ...rest], { ...inside(at, folder), input }),
    shell: (text, { folder, input }) =>
      collected(at, () => shellEffects(text, { ...inside(at, folder), input })),
  };
}

function nested(words: Words, at: CallAt): readonly Effect[] {
  const span = spanOf(words);
  const run = (): Scope => callEffects(words, { ...at, span });
  return collected(at, () => at.walk.within({ words, span, aside: [] }, run));
}

const inside = (at: CallAt, folder: Place): CallAt => ({ ...at, scope: moved(at.scope, [folder]) });

const spanOf = (words: Words): Span => [words[0].span[0], Math.max(...words.map(({ span }) => span[1]))];

/** What a command inside a command does, for the outer one to answer for. */
function collected({ walk, span, scope }: CallAt, work: () => unknown): readonly Effect[] {
  const before = walk.effects.length;
  walk.deeper(span, scope, work);
  return walk.effects.splice(before);
}

const FORGETS = new Set(
  "export declare typeset readonly local read readarray mapfile unset getopts printf let eval source . set shopt".split(
    " ",
  ),
);

const BEFORE: ReadonlySet<string> = new Set(["builtin", "command"]);

function after(program: string, words: Words, scope: Scope): Scope {
  if (BEFORE.has(program)) return behind(words, scope);
  if (program === "cd" || program === "pushd")
    return moved(
      scope,
      scope.folders.map((folder) => target(words, folder)),
    );
  if (program === "popd") return moved(scope, [null]);
  return FORGETS.has(program) ? withoutVariables(scope) : scope;
}

/** What `builtin cd x` leaves behind is what `cd x` does. */
function behind(words: Words, scope: Scope): Scope {
  const at = words.findIndex(({ value }) => !value.startsWith("-") && !BEFORE.has(value));
  const [name, ...rest] = at === -1 ? [] : words.slice(at);
  return name === undefined ? scope : after(name.value, [name, ...rest], scope);
}

/** Where `cd` leads. With the other options links decide, and those are not known here. */
function target(words: Words, folder: Place): Place {
  const [path, ...more] = words.slice(1).filter(({ value }) => !/^-L$|^--$/.test(value));
  if (path === undefined || more.length > 0 || path.kind !== "literal" || /^(?:[-+]\d*)?$/.test(path.value))
    return null;
  return placeOf(path, folder);
}
