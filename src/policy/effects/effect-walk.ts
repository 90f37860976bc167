import { isBoxed } from "../paths/path-place.ts";
import type { Arg, FoundEffect, Use } from "../programs/program-model.ts";
import type { Compound, List, Node, WordPiece, Pipeline, Simple, Span, Word } from "../shell/shell-syntax.ts";
import { prefixEffects, scopeAfterAssignment } from "./assignments.ts";
import { isFilter, isXargs, namedByVariable } from "./assume.ts";
import {
  addTextDangers,
  type Called,
  calledFrom,
  callEffects,
  echoedText,
  guessedEffects,
  innerEffects,
  maybeConsumed,
  type Walk,
  type Words,
  type World,
} from "./call-effects.ts";
import type { Doubt, Effect } from "./effect.ts";
import { ENVIRONMENT, exportsSecret } from "./environment.ts";
import { commandOnListed, readName, simplesIn } from "./handed-on.ts";
import { type Assumed, joinScopes, literalOf, resolve, type Scope, withVariable } from "./scope.ts";
import { compoundEffects, redirectEffects } from "./shell-effects.ts";
import { strayTexts } from "./stray-texts.ts";

const MAX_COMMANDS = 100;
const MAX_DEPTH = 10;
/** Bound on the commands that are judged; a text within the length limit holds more only by repeating itself. */
const MAX_SEEN = 10_000;
const MAX_DEPTH_SEEN = 200;
/** Bound on the words of all commands together: nested wrappers pass the same words on. */
const MAX_WORDS = 50_000;
/** Bounds on texts inside texts: each one is read again at every level. */
const MAX_TEXT_DEPTH = 40;
const MAX_TEXT_CHARACTERS = 1_000_000;

/** Turns a tree of commands into effects. One walk judges one text with all texts inside it. */
export class EffectWalk implements Walk {
  readonly world: World;
  readonly effects: Effect[] = [];
  /** Every command with its words in the order met, with those inside of wrappers and inner texts. */
  readonly calls: Called[] = [];
  readonly fed = new Set<number>();
  readonly open = new Set<number>();
  connection: readonly string[] | null = null;
  /** Whether the stdin of the current command belongs into `open`. */
  #isOpen = false;
  /** Whether there may be an effect for which `strayTexts` looks. */
  #mayRunTexts = false;
  /** How many process substitutions that are written to, and bodies of functions, are around the current command. */
  #written = 0;
  /** A command left the workspace, or may have. */
  strays = false;
  /** Something was met that assumptions could resolve. */
  assumable = false;
  carrying = 0;
  #call = -1;
  #depth = 0;
  /** How many commands are around the one that is judged now, itself included. */
  #openCommands = 0;
  #wordCount = 0;
  #textDepth = 0;
  #textCharacters = 0;
  #limitReported = false;
  #unseenReported = false;

  constructor(world: World) {
    this.world = world;
  }

  add(found: FoundEffect, by: string, span: Span): void {
    const { call = this.#call } = found;
    // Effects of a command inside another one are complete already.
    const whole = found.by !== undefined && found.span !== undefined && found.call !== undefined;
    this.effects.push(
      whole ? (found as Effect) : { ...found, by: found.by ?? by, span: found.span ?? span, call },
    );
    if (found.kind === "unknown") this.#mayRunTexts ||= isTextDoubt(found.doubt);
    else if (found.kind === "code" && found.from === "input") {
      this.#mayRunTexts = true;
      if (this.#isOpen && !whole) this.open.add(call);
    }
  }

  doubt(doubt: Doubt, what: string, span: Span, inside = false): void {
    this.#mayRunTexts ||= isTextDoubt(doubt);
    const stays = inside ? ({ inside } as const) : {};
    this.effects.push({ kind: "unknown", doubt, what, by: what, span, call: this.#call, ...stays });
  }

  noteFolders(folders: Scope["folders"]): void {
    this.strays ||= folders.some((folder) => folder === null || !isBoxed(folder, this.world.workspace));
  }

  /** The bound is reached: nothing is judged more than once from here on. */
  get crowded(): boolean {
    return this.calls.length >= MAX_COMMANDS;
  }

  /** The current command is started by another one, or is a part of one. */
  get nested(): boolean {
    return this.#depth > 0 || this.#openCommands > 1;
  }

  beginCommand(called: Called): number {
    const outer = this.#call;
    this.#wordCount += called.words.length;
    this.#call = this.calls.push(called) - 1;
    this.#openCommands += 1;
    return outer;
  }

  endCommand(outer: number): void {
    this.#openCommands -= 1;
    this.#call = outer;
  }

  /** Returns the scope after the node. */
  node(node: Node, scope: Scope, input: Use["input"]): Scope {
    switch (node.kind) {
      case "simple":
        return this.#simple(node, scope, input);
      case "list":
        return this.#list(node, scope, input);
      case "pipeline":
        pipelineEffects(node, { walk: this, scope, input });
        return scope;
      case "compound":
        if (!this.#enterLevel(node.span)) return scope;
        return this.#leaveLevel(this.#compound(node, scope, input));
    }
  }

  /** Judges the node in a subshell: its scope is dropped. Returns whether its output comes from the network. */
  inSubshell(body: Node, scope: Scope, input: Use["input"] = "unknown"): "unknown" | "network" {
    const before = this.effects.length;
    if (this.#enterLevel(body.span)) this.#leaveLevel(this.node(body, scope, input));
    for (let at = before; at < this.effects.length; at += 1)
      if (this.effects[at]?.kind === "network") return "network";
    return "unknown";
  }

  /** The same for a body that gets its stdin from somewhere in the text. */
  inWritten(body: Node, scope: Scope): "unknown" | "network" {
    this.#written += 1;
    const source = this.inSubshell(body, scope);
    this.#written -= 1;
    return source;
  }

  lookAround(tree: Node, from: number, scope: Scope): void {
    if (!this.#mayRunTexts || this.world.assumptions !== null || this.crowded) return;
    const found = from === 0 ? this.effects : this.effects.slice(from);
    for (const text of strayTexts(tree, found, this.calls))
      addTextDangers(text, { walk: this, scope, input: "unknown", span: text.span });
  }

  deeper(span: Span, work: () => unknown): void {
    if (this.#enterLevel(span)) this.#leaveLevel(work());
  }

  innerText(length: number, span: Span, work: () => void): void {
    this.#textCharacters += length;
    if (this.#textDepth >= MAX_TEXT_DEPTH || this.#textCharacters > MAX_TEXT_CHARACTERS) {
      this.#doubtUnseen(span);
      return;
    }
    this.#textDepth += 1;
    work();
    this.#textDepth -= 1;
  }

  /** Goes one level deeper, until `leaveLevel` is called; false where that would be too deep or too much. */
  #enterLevel(span: Span): boolean {
    if (this.#depth >= MAX_DEPTH_SEEN || this.calls.length > MAX_SEEN || this.#wordCount > MAX_WORDS) {
      this.#doubtUnseen(span);
      return false;
    }
    if (this.#depth === MAX_DEPTH) this.doubt("shell.limit", `more than ${MAX_DEPTH} levels`, span);
    this.#depth += 1;
    return true;
  }

  #leaveLevel<T>(made: T): T {
    this.#depth -= 1;
    return made;
  }

  #doubtUnseen(span: Span): void {
    if (!this.#unseenReported) this.doubt("shell.unseen", "this part", span);
    this.#unseenReported = true;
  }

  args(words: readonly Word[], scope: Scope): readonly Arg[] {
    const { assumptions, workspace } = this.world;
    const args: Arg[] = [];
    for (const word of words) {
      const literal = literalOf(word);
      if (literal === null) args.push(...this.#resolved(word, scope));
      else args.push(literal);
    }
    return assumptions === null ? args : args.map((arg) => namedByVariable(arg, scope, workspace));
  }

  #resolved(word: Word, scope: Scope): readonly Arg[] {
    const { home } = this.world;
    const assumed = (piece: WordPiece): Assumed | null => this.#assumed(piece, scope);
    const script = (body: Node, written: boolean): "unknown" | "network" =>
      written ? this.inWritten(body, scope) : this.inSubshell(body, scope);
    const evaluates = (what: string): void => this.doubt("shell.expansion", what, word.span);
    const inherits = (name: string): void => {
      if (exportsSecret(name)) this.add({ kind: "read", path: ENVIRONMENT }, `$${name}`, word.span);
    };
    return resolve(word, { scope, home, script, evaluates, inherits, assumed });
  }

  #assumed(piece: WordPiece, scope: Scope): Assumed | null {
    const { assumptions } = this.world;
    if (assumptions !== null) return assumptions.of(piece, scope, (words) => this.args(words, scope));
    this.assumable ||= piece.kind !== "text" && piece.kind !== "home";
    return null;
  }

  #list({ items }: List, scope: Scope, input: Use["input"]): Scope {
    const [only] = items;
    if (only === undefined) return scope;
    if (items.length === 1) {
      const after = this.node(only.node, scope, input);
      const stays = after === scope || only.then === "&" || leavesShell(only.node);
      return stays ? scope : joinScopes(after, scopeAfterFailure(after, scope));
    }
    let chain = chainFrom(scope);
    let link: Link = ";";
    for (const { node, then } of items) {
      const now = startOf(chain, link);
      const after = this.node(node, now, maybeConsumed(input));
      chain = withLink(
        chain,
        link,
        leavesShell(node) ? null : { after, failed: scopeAfterFailure(after, now) },
      );
      if (then === "&") chain = chainFrom(chain.start);
      else if (then === ";") chain = chainFrom(scopeAfterChain(chain));
      link = then;
    }
    return chain.start;
  }

  #compound(node: Compound, scope: Scope, input: Use["input"]): Scope {
    const redirected = redirectEffects(node.redirects, { walk: this, scope, by: node.what, input });
    const whole = node.what === "group" || node.what === "subshell";
    return compoundEffects(node, {
      walk: this,
      scope,
      input: whole ? redirected : maybeConsumed(redirected),
    });
  }

  #simple(node: Simple, scope: Scope, input: Use["input"]): Scope {
    if (this.crowded && !this.#limitReported) {
      this.#limitReported = true;
      this.doubt("shell.limit", `more than ${MAX_COMMANDS} commands`, node.span);
    }
    if (this.calls.length > MAX_SEEN) {
      this.#doubtUnseen(node.span);
      return scope;
    }
    const words = this.args(node.words, scope);
    const outer = this.beginCommand(calledFrom(node, words));
    if (input === "network") this.fed.add(this.#call);
    const outerOpen = this.#isOpen;
    this.#isOpen = input === "nothing" || this.#written > 0;
    const after = this.#command(node, words, { scope, input });
    this.#isOpen = outerOpen;
    this.endCommand(outer);
    return after;
  }

  #command(
    node: Simple,
    words: readonly Arg[],
    { scope, input }: { readonly scope: Scope; readonly input: Use["input"] },
  ): Scope {
    const by = words[0]?.value ?? "shell";
    const shared = node.assignments.length > 0 || readsSameStdin(words) ? maybeConsumed(input) : input;
    const fed =
      node.redirects.length === 0
        ? shared
        : redirectEffects(node.redirects, { walk: this, scope, by, input: shared });
    if (!isCommand(words))
      return node.assignments.reduce((now, each) => scopeAfterAssignment(each, now, this), scope);
    const at = { walk: this, scope, input: fed, span: node.span };
    for (const each of node.assignments) prefixEffects(each, words[0], at);
    const after = callEffects(words, at);
    if (!this.crowded) guessedEffects(words, at);
    return after;
  }
}

const isTextDoubt = (doubt: Doubt): boolean => doubt === "word.dynamic" || doubt === "command.escapes";

/** A substitution among the words reads the same stdin. */
const readsSameStdin = (words: readonly Arg[]): boolean => words.some(({ feed }) => feed !== undefined);

const isCommand = (words: readonly Arg[]): words is Words => words.length > 0;

interface At {
  readonly walk: Walk;
  readonly scope: Scope;
  readonly input: Use["input"];
}

/** The text that `cat <<EOF` puts into a pipe, where it is literal. */
function copied(node: Node, scope: Scope, walk: Walk): Use["input"] | null {
  if (node.kind !== "simple" || node.assignments.length > 0) return null;
  const [redirect, ...more] = node.redirects;
  const [name, ...rest] = node.words.map(literalOf);
  if (redirect?.operator !== "<<" || more.length > 0 || name?.value !== "cat" || rest.length > 0) return null;
  const [text] = quietArgs({ words: [redirect.target] }, scope, walk);
  return text?.kind === "literal" ? { text: text.value, span: text.span } : null;
}

/** Whether a word of the command is a variable that holds text from the network. */
const carriesNetwork = (part: Node, { variables }: Scope): boolean =>
  part.kind === "simple" &&
  part.words.some(({ pieces }) =>
    pieces.some((piece) => piece.kind === "variable" && variables.get(piece.name)?.feed === "network"),
  );

/** Each part runs in a subshell, fed by the part before it. */
function pipelineEffects({ parts }: Pipeline, { walk, scope, input }: At): void {
  const { assumptions } = walk.world;
  let fed = input;
  for (const [index, part] of parts.entries()) {
    const source = walk.inSubshell(part, scope, fed);
    const next = parts[index + 1];
    const passes = assumptions !== null && next !== undefined && (isXargs(next) || isFilter(next));
    const names = passes ? assumptions.namesFrom(part, fed, (words) => walk.args(words, scope)) : null;
    if (next !== undefined && !walk.crowded) handedEffects(part, next, { walk, scope, input });
    const fetched = source === "network" || fed === "network" || carriesNetwork(part, scope);
    fed = fetched ? "network" : (names ?? echoedText(part) ?? copied(part, scope, walk) ?? "unknown");
  }
  walk.assumable ||= parts.some(isXargs);
}

/**
 * Adds what a command does to the files that the command in front of it lists: behind `xargs`, or in a loop that reads
 * their names.
 */
function handedEffects(lister: Node, next: Node, at: At): void {
  if (lister.kind !== "simple") return;
  const { walk, scope, input } = at;
  const commands =
    next.kind === "simple" ? (isXargs(next) ? [quietArgs(next, scope, walk)] : []) : loopedCommands(next, at);
  for (const command of commands) {
    const [first, ...rest] = commandOnListed(quietArgs(lister, scope, walk), command) ?? [];
    if (first === undefined) continue;
    const found = innerEffects([first, ...rest], { walk, scope, input, span: next.span });
    for (const effect of found)
      if ("path" in effect && effect.path !== null && effect.kind !== "code" && effect.by !== "find")
        walk.effects.push(effect);
  }
}

/** `while read name; do …`: the commands with the name as commands of `xargs -I{}`. */
function loopedCommands(loop: Node, { walk, scope }: At): readonly (readonly Arg[])[] {
  if (loop.kind !== "compound" || loop.what !== "while") return [];
  const [condition, ...bodies] = loop.bodies;
  const name = condition === undefined ? null : readName(condition);
  if (name === null) return [];
  const literal = (value: string): Arg => ({ kind: "literal", value, span: loop.span });
  const named = withVariable(scope, name, literal("{}"));
  return bodies
    .flatMap(simplesIn)
    .slice(0, MAX_LOOPED)
    .map((node) => quietArgs(node, named, walk))
    .filter((args) => args.some(({ value }) => value.includes("{}")))
    .map((args) => ["xargs", "-I", "{}"].map(literal).concat(args));
}

/** Commands of a loop that are looked at. */
const MAX_LOOPED = 8;

/** The words of a command whose substitutions are judged elsewhere. */
const quietArgs = (
  { words }: Pick<Simple, "words">,
  scope: Scope,
  { world: { home } }: Walk,
): readonly Arg[] =>
  words.flatMap((word) =>
    resolve(word, {
      scope,
      home,
      script: () => "unknown",
      evaluates: () => undefined,
      inherits: () => undefined,
      assumed: () => null,
    }),
  );

type Link = List["items"][number]["then"];

/** State while reading `a && b || c`. Null: no command can get there. */
interface Chain {
  /** Scope before the first command. */
  readonly start: Scope;
  /** Scope after the last command succeeded, and after it failed. */
  readonly well: Scope | null;
  readonly ill: Scope | null;
}

const chainFrom = (start: Scope): Chain => ({ start, well: start, ill: null });

/** Scope before the command behind `link`. A command that cannot run is judged as if it could. */
function startOf({ start, well, ill }: Chain, link: Link): Scope {
  if (link === "&&") return well ?? start;
  return link === "||" ? (ill ?? well ?? start) : start;
}

/** The chain with the command behind `link` added; `ends` is null if nothing runs after the command. */
function withLink(
  { start, well, ill }: Chain,
  link: Link,
  ends: { readonly after: Scope; readonly failed: Scope } | null,
): Chain {
  const after = ends?.after ?? null;
  const fails = ends?.failed ?? null;
  if (link === "&&") return { start, well: after, ill: eitherOrNull(ill, fails) };
  if (link === "||") return { start, well: eitherOrNull(well, after), ill: fails };
  return { start, well: after, ill: fails };
}

const scopeAfterChain = ({ start, well, ill }: Chain): Scope => eitherOrNull(well, ill) ?? start;

const eitherOrNull = (a: Scope | null, b: Scope | null): Scope | null =>
  a === null ? b : b === null ? a : joinScopes(a, b);

/** A failed command has not changed the folder; it may have set variables. */
function scopeAfterFailure(after: Scope, before: Scope): Scope {
  return after.folders === before.folders
    ? after
    : { ...after, folders: joinScopes(after, { ...after, folders: before.folders }).folders };
}

/**
 * Whether the command surely leaves the shell: what follows `cd x || exit` runs in x. Only the plain form counts: with
 * a wrong argument or a redirect `exit` may not exit.
 */
function leavesShell(node: Node): boolean {
  if (node.kind !== "simple" || node.redirects.length > 0 || node.assignments.length > 0) return false;
  const [name, status, more] = node.words;
  if (name === undefined || more !== undefined || literalOf(name)?.value !== "exit") return false;
  return status === undefined || /^\d{1,3}$/.test(literalOf(status)?.value ?? "");
}
