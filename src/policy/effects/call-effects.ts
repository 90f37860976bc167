/** The walk over a text as its parts see it, and the effects of one command. */
import { resolvePath } from "../paths/normal-path.ts";
import { isTemp } from "../paths/path-place.ts";
import {
  type Arg,
  type FoundEffect,
  isGuess,
  type Model,
  type UseContext,
  UNKNOWN,
  type Use,
} from "../programs/program-model.ts";
import type { Models } from "../programs/program-models.ts";
import type { List, Node, Simple, Span, Word } from "../shell/shell-syntax.ts";
import type { Assumptions } from "./assume.ts";
import { carriedBy, isCarriedDanger, isElsewhere, runsDownload, runsStdin } from "./carried-dangers.ts";
import type { Doubt, Effect, Place } from "./effect.ts";
import { isTame } from "./environment.ts";
import { isLocalTool, settles } from "./local-tools.ts";
import { joinedValues, withFolders, placeOf, type Scope, withoutVariables, withVariable } from "./scope.ts";

/** Facts about the environment of the text. */
export interface World {
  readonly models: Models;
  readonly home: string;
  readonly workspace: string;
  /** Whether a program of the packages lies in `node_modules` of this folder or of one above it in the workspace. */
  installed(name: string, folder: string): boolean;
  /** Source of assumed values for the containment walk; null in the deciding walk. */
  readonly assumptions: Assumptions | null;
  /** Reads a shell text that stands inside the judged one. */
  readShell(text: string): {
    readonly tree: List;
    readonly doubts: readonly { readonly doubt: Doubt; readonly what: string; readonly span: Span }[];
  };
}

/** One command that the text runs. */
export interface Called {
  readonly words: readonly Arg[];
  readonly span: Span;
  /** Spans of its redirects and variable assignments: effects there are the shell's, not the program's. */
  readonly aside: readonly Span[];
}

/** State of one walk over one text, as seen by the functions that judge its parts. */
export interface Walk {
  readonly world: World;
  /** Appended to while walking; an inner walk may replace what it has added. */
  readonly effects: Effect[];
  readonly calls: Called[];
  /** Hosts of the last connection that the shell opened under a number of its own; null without one. */
  connection: readonly string[] | null;
  /** Commands whose stdin comes from the network. */
  readonly fed: ReadonlySet<number>;
  /** Commands that run a stdin which is neither a pipe nor a file, so it may be a descriptor: `bash <&3`, `>(bash)`. */
  readonly open: ReadonlySet<number>;
  /** Something was met that assumptions could resolve. */
  assumable: boolean;
  /** How many commands that only may run are around the one that is judged now. */
  carrying: number;
  /** The bound is reached: nothing is judged more than once. */
  readonly crowded: boolean;
  add(found: FoundEffect, by: string, span: Span): void;
  doubt(doubt: Doubt, what: string, span: Span, inside?: boolean): void;
  noteFolders(folders: Scope["folders"]): void;
  readonly nested: boolean;
  /** Attributes the effects that follow to this command, until `endCommand` is called with the number that this returns. */
  beginCommand(called: Called): number;
  endCommand(outer: number): void;
  node(node: Node, scope: Scope, input: Use["input"]): Scope;
  inSubshell(body: Node, scope: Scope, input?: Use["input"]): "unknown" | "network";
  inWritten(body: Node, scope: Scope): "unknown" | "network";
  deeper(span: Span, work: () => unknown): void;
  /** Adds dangers that stand in the tree, whose effects begin at this number, where a shell of it may run them. */
  lookAround(tree: Node, from: number, scope: Scope): void;
  /** Reads a text of this length that a shell inside the judged text runs; doubts it where that would be too much. */
  innerText(length: number, span: Span, work: () => void): void;
  args(words: readonly Word[], scope: Scope): readonly Arg[];
}

interface CallAt {
  readonly walk: Walk;
  readonly scope: Scope;
  readonly input: Use["input"];
  readonly span: Span;
}

/** A program's name and its arguments. */
export type Words = readonly [Arg, ...Arg[]];

/** Judges one command with its words. Returns the scope after it. */
export function callEffects(words: Words, at: CallAt): Scope {
  const { walk, scope } = at;
  const [name] = words;
  const before = walk.effects.length;
  // A function defined in the text: its body was judged at the definition.
  if (name.kind === "literal" && scope.functions.has(name.value)) return withoutVariables(scope);
  if (name.kind !== "literal") doubtName(name, walk);
  effectsWithoutName(words, at);
  for (const word of words)
    if (isGuess(word) && word.user !== true) walk.doubt("word.dynamic", word.value, word.span);
  const [program, trusted] = programOf(name.value);
  const model = walk.world.models.find(program);
  if (!trusted) pathCallEffects(name, at);
  else if (model === undefined && !name.value.includes(UNKNOWN))
    walk.doubt("command.unknown", name.value, name.span, isLocal(program, words, at));
  if (model !== undefined) effectsPerFolder(model, words, at);
  addCarriedDangers(words, before, at);
  const here = { scope, home: walk.world.home, input: at.input };
  const next = trusted ? scopeAfter(program, words, here) : scope;
  if (next.folders !== scope.folders) walk.noteFolders(next.folders);
  return next;
}

/** Adds the dangers of commands and texts that the command may run without being followed. */
function addCarriedDangers(words: Words, before: number, at: CallAt): void {
  const { walk } = at;
  if (walk.carrying >= MAX_CARRIED || walk.crowded || walk.world.assumptions !== null) return;
  const found = walk.effects.slice(before);
  if (found.length === 0) return;
  const [program] = programOf(words[0].value);
  if (found.some(isCode) && ((at.input === "network" && runsStdin(found)) || runsDownload(program, found)))
    walk.add({ kind: "code", from: "fetched", path: null }, program, at.span);
  const elsewhere = isElsewhere(program);
  const inner = elsewhere ? inFolder(at, null) : at;
  const { commands, texts } = carriedBy(program, words, found, at.input);
  for (const command of commands) addDangers(walk, elsewhere, () => innerEffects(command, inner));
  for (const text of texts) addTextDangers(text, inner, elsewhere);
}

const isCode = ({ kind }: Effect): boolean => kind === "code";

/** Adds the dangers of a text that a shell may run. */
export function addTextDangers(text: Arg, at: CallAt, elsewhere = false): void {
  addDangers(at.walk, elsewhere, () => collectEffects(at, () => innerTextEffects(text, at)));
}

/** How deep carried commands are looked for in carried commands. */
const MAX_CARRIED = 2;

function addDangers(walk: Walk, elsewhere: boolean, effectsIn: () => readonly Effect[]): void {
  const calls = walk.calls.length;
  walk.carrying += 1;
  const dangers = effectsIn().filter((effect) => isCarriedDanger(effect, walk.world, elsewhere));
  walk.carrying -= 1;
  if (dangers.length === 0) walk.calls.length = calls;
  walk.effects.push(...dangers);
}

function doubtName({ value, span, feed }: Arg, walk: Walk): void {
  walk.doubt("word.dynamic", value, span);
  if (feed === "network") walk.add({ kind: "code", from: "fetched", path: null }, value, span);
}

/** The name may expand to no word at all; then the next word is the name, so its dangers are looked for too. */
function effectsWithoutName(words: Words, at: CallAt): void {
  if (words[0].loose !== true) return;
  const [, next, ...rest] = words;
  if (next?.kind !== "literal" || next.value.startsWith("-")) return;
  at.walk.effects.push(...innerEffects([next, ...rest], at));
}

const SYSTEM = new Set(["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"]);

/** The name to look up, and whether that program is the one that runs. */
export function programOf(value: string): readonly [name: string, trusted: boolean] {
  const slash = value.lastIndexOf("/");
  if (slash === -1) return [value, true];
  return [value.slice(slash + 1), SYSTEM.has(value.slice(0, slash))];
}

/** A program given by its path: a file of the project, or an unknown one. */
function pathCallEffects(name: Arg, { walk, scope }: CallAt): void {
  for (const folder of scope.folders) {
    const path = placeOf(name, folder);
    const inside = path !== null && path.startsWith(`${walk.world.workspace}/`);
    if (inside) walk.add({ kind: "code", from: "project", path }, name.value, name.span);
    else walk.doubt("command.elsewhere", name.value, name.span, path !== null && isTemp(path));
  }
}

function effectsPerFolder(model: Model, words: Words, at: CallAt): void {
  const { walk, scope } = at;
  const { value } = words[0];
  const seen = scope.folders.length > 1 ? new Set<string>() : null;
  for (const folder of scope.folders) {
    const found = walk.world.models.effects(model, words, new CallSurroundings(folder, at));
    for (const each of found) {
      if (seen !== null) {
        const key = JSON.stringify(each);
        if (seen.has(key)) continue;
        seen.add(key);
      }
      const settled = each.kind === "unknown" && isSettled(each, words, { folder, ...placesOf(walk) });
      walk.add(settled ? { ...each, inside: true } : each, value, at.span);
    }
  }
}

/** Whether the box settles the doubt. */
const isSettled = (
  found: Extract<FoundEffect, { readonly kind: "unknown" }>,
  words: Words,
  at: Parameters<typeof settles>[3],
): boolean => found.inside !== true && settles(programOf(words[0].value)[0], words.slice(1), found, at);

const isLocal = (program: string, [, ...args]: Words, { walk, scope }: CallAt): boolean =>
  scope.folders.every((folder) => isLocalTool(program, args, { folder, ...placesOf(walk) }));

const placesOf = ({ world: { workspace, home } }: Walk): Omit<Parameters<typeof settles>[3], "folder"> => ({
  workspace,
  home,
});

/** What a program's model may ask of the walk. A class, since one is made for each command. */
class CallSurroundings implements UseContext {
  readonly folder: Place;
  readonly home: string;
  readonly input: Use["input"];
  readonly nested: boolean;
  readonly #at: CallAt;

  constructor(folder: Place, at: CallAt) {
    this.folder = folder;
    this.home = at.walk.world.home;
    this.input = at.input;
    this.nested = at.walk.nested;
    this.#at = at;
  }

  movedTo(folder: Place): UseContext {
    return new CallSurroundings(folder, this.#at);
  }

  /** The home in `~user` is a guess wherever it stands for a place; as data it does not matter. */
  place(arg: Arg, from: Place): Place {
    if (arg.user === true) doubtOnce(arg, this.#at.walk);
    return placeOf(arg, from);
  }

  tame(name: string, value: string | null, folder: Place): boolean {
    return isTame(name, value, { folders: [folder], workspace: this.#at.walk.world.workspace });
  }

  installed(name: string, folder: Place): boolean {
    return folder !== null && this.#at.walk.world.installed(name, folder);
  }

  command([first, ...rest]: readonly Arg[], { folder, input }: StartedAt): readonly FoundEffect[] {
    return first === undefined
      ? []
      : innerEffects([first, ...rest], { ...inFolder(this.#at, folder), input });
  }

  shell(text: Arg, { folder, input }: StartedAt): readonly FoundEffect[] {
    const at = this.#at;
    return collectEffects(at, () => innerTextEffects(text, { ...inFolder(at, folder), input }));
  }
}

function doubtOnce({ value, span }: Arg, walk: Walk): void {
  const isDoubted = walk.effects.some(
    (effect) =>
      effect.kind === "unknown" &&
      effect.doubt === "word.dynamic" &&
      effect.span[0] === span[0] &&
      effect.span[1] === span[1],
  );
  if (!isDoubted) walk.doubt("word.dynamic", value, span);
}

type StartedAt = Parameters<UseContext["command"]>[1];

/** The effects of a command that another one runs; they are not added. */
export function innerEffects(words: Words, at: CallAt): readonly Effect[] {
  const { walk } = at;
  const span = spanOf(words);
  return collectEffects(at, () => {
    const outer = walk.beginCommand({ words, span, aside: [] });
    callEffects(words, { ...at, span });
    walk.endCommand(outer);
  });
}

const inFolder = (at: CallAt, folder: Place): CallAt => ({ ...at, scope: withFolders(at.scope, [folder]) });

const spanOf = (words: Words): Span => [words[0].span[0], Math.max(...words.map(({ span }) => span[1]))];

/** Adds what the command would do with the values that its unknown words usually have. Doubts about them are known already. */
export function guessedEffects(words: Words, at: CallAt): void {
  if (!words.some((word) => word.guess !== undefined || isSplit(word))) return;
  const [first, ...rest] = words.flatMap(asGuessed);
  if (first !== undefined)
    at.walk.effects.push(...innerEffects([first, ...rest], at).filter(({ kind }) => kind !== "unknown"));
}

/** A part of a known value that the shell splits, or a value that only one way through the text sets. */
const isSplit = (word: Arg): boolean => isGuess(word) && word.user !== true && word.value !== "";

function asGuessed(arg: Arg): readonly Arg[] {
  const { guess, span, loose, value: part } = arg;
  if (isSplit(arg)) return [{ kind: part.includes("*") ? "glob" : "literal", value: part, span }];
  if (guess === undefined) return [arg];
  const values = loose === true ? guess.split(" ").filter((value) => value !== "") : [guess];
  return values.map((value): Arg => ({ kind: value.includes("*") ? "glob" : "literal", value, span }));
}

/** Effects of a command inside another command, attributed to the outer one. */
function collectEffects({ walk, span }: CallAt, work: () => unknown): readonly Effect[] {
  const before = walk.effects.length;
  walk.deeper(span, work);
  return walk.effects.splice(before);
}

const CLEARS_VARIABLES = new Set(
  "read readarray mapfile unset getopts printf let eval source . set shift shopt".split(" "),
);

const DECLARES: ReadonlySet<string> = new Set(["export", "readonly", "declare", "typeset", "local"]);
/** Attributes that change no value. */
const PLAIN_ATTRIBUTES = /^-[gxr]+$/;
const DECLARED = /^([A-Za-z_]\w*)(?:=([^]*))?$/;

/** `export A=x` leaves the same scope as `A=x`, if each word plainly names the variable that it sets. */
function scopeAfterDeclaration([program, ...args]: Words, scope: Scope): Scope {
  let after = scope;
  for (const arg of args) {
    if (arg.kind === "literal" && PLAIN_ATTRIBUTES.test(arg.value)) continue;
    const [, name, value] = DECLARED.exec(arg.value) ?? [];
    if (name === undefined || value?.startsWith("(") === true) return withoutVariables(scope);
    if (value !== undefined) after = withVariable(after, name, plainValue({ ...arg, value }));
    else if (program.value !== "export" && program.value !== "readonly")
      after = withVariable(after, name, null);
  }
  return after;
}

/** Null for a value that is not plain; an unquoted tilde in it may be a home folder. */
function plainValue(arg: Arg): Arg | null {
  if (arg.feed === "network") return { ...arg, kind: "dynamic", value: UNKNOWN };
  return arg.kind !== "literal" || arg.value.includes("~") ? null : arg;
}

const BUILTIN_PREFIXES: ReadonlySet<string> = new Set(["builtin", "command"]);

interface Here {
  readonly scope: Scope;
  readonly home: string;
  readonly input: Use["input"];
}

function scopeAfter(program: string, words: Words, here: Here): Scope {
  const { scope } = here;
  if (BUILTIN_PREFIXES.has(program)) return scopeAfterBuiltin(words, here);
  if (program === "cd" && words.length === 1) return withFolders(scope, [homeIn(here)]);
  if (program === "cd" || program === "pushd")
    return withFolders(
      scope,
      scope.folders.map((folder) => cdTarget(words, folder)),
    );
  if (program === "popd") return withFolders(scope, [null]);
  if (DECLARES.has(program)) return scopeAfterDeclaration(words, scope);
  if (program === "read" && here.input === "network") return withFetchedLine(words, withoutVariables(scope));
  if (program === "set") return withPositional(words, withoutVariables(scope));
  return CLEARS_VARIABLES.has(program) ? withoutVariables(scope) : scope;
}

/** The variables of `read` hold what came from the network. */
const withFetchedLine = ([, ...args]: Words, scope: Scope): Scope =>
  args
    .filter(({ kind, value }) => kind === "literal" && /^[A-Za-z_]\w*$/.test(value))
    .reduce(
      (now, each) =>
        withVariable(now, each.value, { kind: "dynamic", value: UNKNOWN, span: each.span, feed: "network" }),
      scope,
    );

/** `set -- a b` gives values to `$1`, `$2` and `$@`. */
function withPositional([, dashes, ...values]: Words, scope: Scope): Scope {
  if (dashes?.value !== "--" || values.length === 0 || values.some(({ kind }) => kind !== "literal"))
    return scope;
  const all = joinedValues(values);
  const numbered = values.slice(0, 9).reduce((now, each, at) => withVariable(now, `${at + 1}`, each), scope);
  return all === null ? numbered : withVariable(numbered, "@", all);
}

/** `builtin cd x` leaves the same scope as `cd x`. */
function scopeAfterBuiltin(words: Words, here: Here): Scope {
  const at = words.findIndex(({ value }) => !value.startsWith("-") && !BUILTIN_PREFIXES.has(value));
  const [name, ...rest] = at === -1 ? [] : words.slice(at);
  return name === undefined ? here.scope : scopeAfter(name.value, [name, ...rest], here);
}

/** Where `cd` alone leads. */
function homeIn({ scope, home }: Here): Place {
  const set = scope.variables.get("HOME");
  if (set === undefined) return home;
  return set.kind === "literal" && set.value.startsWith("/") ? resolvePath("/", set.value) : null;
}

/** Target of `cd`. With options that depend on links it is unknown. */
function cdTarget(words: Words, folder: Place): Place {
  const [path, ...more] = words.slice(1).filter(({ value }) => !/^-L$|^--$/.test(value));
  if (path === undefined || more.length > 0 || path.kind !== "literal" || /^(?:[-+]\d*)?$/.test(path.value))
    return null;
  return placeOf(path, folder);
}

/** Effects of a text that a shell runs. */
function innerTextEffects(text: Arg, at: CallAt): void {
  const { walk } = at;
  if (text.kind !== "literal") {
    walk.doubt("word.dynamic", text.value, text.span);
    const from = text.feed === "network" ? "fetched" : "input";
    walk.add({ kind: "code", from, path: null }, "shell", text.span);
  }
  if (text.value.replaceAll(UNKNOWN, "").trim() === "") return;
  walk.innerText(text.value.length, text.span, () => {
    readTextEffects(text, at);
  });
}

function readTextEffects(text: Arg, { walk, scope, input }: CallAt): void {
  // An unknown part is read as some word, so that dangers around it are still found.
  const { tree, doubts } = walk.world.readShell(text.value.replaceAll(UNKNOWN, "_"));
  const before = walk.effects.length;
  const callsBefore = walk.calls.length;
  for (const { doubt, what, span } of doubts) walk.doubt(doubt, what, span);
  walk.inSubshell(tree, withoutVariables(scope), input);
  if (walk.carrying === 0) walk.lookAround(tree, before, scope);
  const inner = walk.effects.splice(before);
  const place = spanMapper(text);
  for (const effect of inner) walk.effects.push({ ...effect, span: place(effect.span) });
  for (let call = callsBefore; call < walk.calls.length; call += 1) {
    const called = walk.calls[call];
    if (called !== undefined) walk.calls[call] = mappedCall(called, place);
  }
}

/** Maps offsets in the inner text to the outer one; exact where the inner text stands there literally. */
function spanMapper({ value, span: [start, end] }: Arg): (span: Span) => Span {
  const around = end - start - value.length;
  if (around !== 0 && around !== 2) return () => [start, end];
  const shift = start + around / 2;
  // Input of the inner text comes from outside of it and is shown at its edge.
  const inside = (at: number): number => Math.min(Math.max(at + shift, start), end);
  return ([from, to]) => [inside(from), inside(to)];
}

export function calledFrom({ span, redirects, assignments }: Simple, words: readonly Arg[]): Called {
  const aside =
    redirects.length + assignments.length === 0
      ? NO_SPANS
      : [...redirects, ...assignments].map((each) => each.span);
  return { words, span, aside };
}

const NO_SPANS: readonly Span[] = [];

/** Moves the span from the inner text to the text around it. */
const mappedCall = ({ words, span, aside }: Called, place: (span: Span) => Span): Called => ({
  words: words.map((word) => ({ ...word, span: place(word.span) })),
  span: place(span),
  aside: aside.map(place),
});

/** The effect comes from a redirect or a variable assignment of this command. */
export const isAside = ({ aside }: Called, [from, to]: Span): boolean =>
  aside.some((span) => span[0] === from && span[1] === to);

/**
 * Code that runs later (a function, a trap) runs in the shell's folder at that time, which is unknown once it left
 * the workspace.
 */
export function withLater(effects: readonly Effect[], strays: boolean): readonly Effect[] {
  if (!strays) return effects;
  return effects.map((effect) => {
    if (effect.kind !== "unknown" || !LATER.has(effect.doubt) || effect.inside !== true) return effect;
    const { inside: _, ...open } = effect;
    return open;
  });
}

const LATER: ReadonlySet<string> = new Set(["shell.builtin", "shell.function"]);

/** Known input of which another command may have consumed a part; the rest is unknown. */
export const maybeConsumed = (input: Use["input"]): Use["input"] =>
  typeof input === "string" ? input : "unknown";

/** The text that `echo words` puts into a pipe, where it is literal. */
export function echoedText(node: Node): Use["input"] | null {
  if (node.kind !== "simple" || node.redirects.length > 0) return null;
  const [named] = node.words[0]?.pieces ?? [];
  if (named?.kind !== "text" || (named.text !== "echo" && named.text !== "printf")) return null;
  const texts = node.words.map(({ pieces: [piece, ...more] }) =>
    more.length === 0 && piece?.kind === "text" ? piece.text : null,
  );
  const [name, ...words] = texts;
  if (name === null || words.includes(null) || words[0]?.startsWith("-") === true) return null;
  const text = `${words.join(" ")}\n`;
  return { text, span: node.span, ...(/[\\%]/.test(text) ? { rough: true } : {}) };
}
