import type { Models } from "../models/apply.ts";
import type { Arg, Found, Use } from "../models/model.ts";
import type { Assignment, Compound, List, Node, Pipeline, Simple, Span, Word } from "../shell/syntax.ts";
import { callEffects } from "./call.ts";
import { type Called, calledFrom } from "./called.ts";
import { compoundEffects } from "./compound.ts";
import type { Doubt, Effect } from "./effect.ts";
import { ENVIRONMENT, exportsSecret, isInert, isPrivate, variableDoubt } from "./environment.ts";
import { redirectEffects } from "./redirects.ts";
import { resolve } from "./resolve.ts";
import { either, type Scope, withVariable } from "./scope.ts";

/** What the walk needs to know of the world around the text. */
export interface World {
  readonly models: Models;
  readonly home: string;
  readonly workspace: string;
  /** A text that a shell runs inside the judged one. */
  readShell(text: string): {
    readonly tree: List;
    readonly doubts: readonly { readonly doubt: Doubt; readonly what: string; readonly span: Span }[];
  };
}

/** Beyond these it asks, and goes on looking for dangers. */
const MANY = 100;
const DEEP = 10;
/** Beyond these it looks no further, and denies. */
const MOST = 2000;
const DEEPEST = 40;

/** Turns a tree of commands into what they do. One walk judges one text, with all texts inside it. */
export class Walk {
  readonly world: World;
  readonly effects: Effect[] = [];
  /** Every command with its words, those inside wrappers and texts too, in the order they were met. */
  readonly calls: Called[] = [];
  private call = -1;
  private depth = 0;

  constructor(world: World) {
    this.world = world;
  }

  add(found: Found, by: string, span: Span): void {
    const { call = this.call } = found;
    this.effects.push({ ...found, by: found.by ?? by, span: found.span ?? span, call });
  }

  doubt(doubt: Doubt, what: string, span: Span): void {
    this.effects.push({ kind: "unknown", doubt, what, by: what, span, call: this.call });
  }

  /** Nothing more is looked at several times. */
  get crowded(): boolean {
    return this.calls.length >= MANY;
  }

  /** What `work` finds belongs to this command. */
  within<T>(called: Called, work: () => T): T {
    const outer = this.call;
    this.call = this.calls.push(called) - 1;
    try {
      return work();
    } finally {
      this.call = outer;
    }
  }

  /** Returns what is true after it. */
  node(node: Node, scope: Scope, input: Use["input"]): Scope {
    switch (node.kind) {
      case "simple":
        return this.simple(node, scope, input);
      case "list":
        return this.list(node, scope, input);
      case "pipeline":
        this.pipeline(node, scope, input);
        return scope;
      case "compound":
        return this.deeper(node.span, scope, () => this.compound(node, scope, input));
    }
  }

  /** In a shell of its own: nothing of it is left behind. Answers whether something in it comes from the network. */
  apart(body: Node, scope: Scope, input: Use["input"] = "unknown"): "unknown" | "network" {
    const before = this.effects.length;
    this.deeper(body.span, scope, () => this.node(body, scope, input));
    return this.effects.slice(before).some(({ kind }) => kind === "network") ? "network" : "unknown";
  }

  deeper<T>(span: Span, otherwise: T, work: () => T): T {
    if (this.depth === DEEP) this.doubt("shell.limit", `more than ${DEEP} levels`, span);
    if (this.depth >= DEEPEST) {
      this.doubt("shell.excess", `more than ${DEEPEST} levels`, span);
      return otherwise;
    }
    this.depth += 1;
    try {
      return work();
    } finally {
      this.depth -= 1;
    }
  }

  args(words: readonly Word[], scope: Scope): readonly Arg[] {
    const { home } = this.world;
    const script = (body: Node): "unknown" | "network" => this.apart(body, scope);
    return words.flatMap((word) => {
      const evaluates = (what: string): void => this.doubt("shell.expansion", what, word.span);
      const inherits = (name: string): void => {
        if (exportsSecret(name)) this.add({ kind: "read", path: ENVIRONMENT }, `$${name}`, word.span);
      };
      return resolve(word, { scope, home, script, evaluates, inherits });
    });
  }

  private list({ items }: List, scope: Scope, input: Use["input"]): Scope {
    let chain = scope;
    let now = scope;
    let first = true;
    /** After the left side of `||`, when that went well. */
    let well: Scope | null = null;
    for (const { node, then } of items) {
      const after = this.node(node, now, input);
      const next =
        well !== null && leaves(node) ? well : first ? unlessMoved(after, now) : either(after, chain);
      well = then === "||" ? after : null;
      now = then === "&&" ? after : then === "&" ? chain : next;
      first = then === ";" || then === "&";
      if (first) chain = now;
    }
    return now;
  }

  private pipeline({ parts }: Pipeline, scope: Scope, input: Use["input"]): void {
    let fed = input;
    for (const part of parts) {
      const source = this.apart(part, scope, fed);
      fed = source === "network" || fed === "network" ? "network" : (echoed(part) ?? "unknown");
    }
  }

  private compound(node: Compound, scope: Scope, input: Use["input"]): Scope {
    const redirects = redirectEffects(node.redirects, { walk: this, scope, by: node.what, input });
    return compoundEffects(node, { walk: this, scope, input: redirects });
  }

  private simple(node: Simple, scope: Scope, input: Use["input"]): Scope {
    if (this.calls.length === MANY) this.doubt("shell.limit", `more than ${MANY} commands`, node.span);
    if (this.calls.length === MOST) this.doubt("shell.excess", `more than ${MOST} commands`, node.span);
    if (this.calls.length > MOST) return scope;
    const words = this.args(node.words, scope);
    return this.within(calledFrom(node, words), () => this.command(node, words, { scope, input }));
  }

  private command(
    node: Simple,
    [first, ...rest]: readonly Arg[],
    { scope, input }: { readonly scope: Scope; readonly input: Use["input"] },
  ): Scope {
    const by = first?.value ?? "shell";
    const fed =
      node.redirects.length === 0 ? input : redirectEffects(node.redirects, { walk: this, scope, by, input });
    if (first === undefined) return node.assignments.reduce((now, each) => this.assign(each, now), scope);
    for (const each of node.assignments) this.prefix(each, scope);
    return callEffects([first, ...rest], { walk: this, scope, input: fed, span: node.span });
  }

  /** `name=value` before a command. */
  private prefix(assignment: Assignment, scope: Scope): void {
    const value = this.valueOf(assignment, scope);
    const { name, span } = assignment;
    const known = value?.kind === "literal" ? value.value : null;
    if (!isInert(name, known)) this.doubt(variableDoubt(name), name, span);
  }

  /** `name=value` alone. */
  private assign(assignment: Assignment, scope: Scope): Scope {
    const value = this.valueOf(assignment, scope);
    const { name, span, append } = assignment;
    if (!isPrivate(name) && !isInert(name, value?.kind === "literal" ? value.value : null))
      this.doubt(variableDoubt(name), name, span);
    return withVariable(scope, name, append || value?.kind !== "literal" ? null : value);
  }

  private valueOf({ value, others }: Assignment, scope: Scope): Arg | null {
    this.args(others, scope);
    if (value === null) return null;
    const args = this.args([value], scope);
    return args.length === 1 ? (args[0] ?? null) : null;
  }
}

/** Behind a command that certainly ran, but may have failed: a `cd` then leaves everything where it was. */
const unlessMoved = (after: Scope, before: Scope): Scope =>
  after.folders === before.folders
    ? after
    : { ...after, folders: either(after, { ...after, folders: before.folders }).folders };

/** `cd x || exit`: whoever goes on is in x. */
function leaves(node: Node): boolean {
  if (node.kind !== "simple") return false;
  const [piece] = node.words[0]?.pieces ?? [];
  return piece?.kind === "text" && (piece.text === "exit" || piece.text === "return");
}

/** What `echo words` puts into a pipe, where that is plain to see. */
function echoed(node: Node): Use["input"] | null {
  if (node.kind !== "simple" || node.redirects.length > 0) return null;
  const texts = node.words.map(({ pieces: [piece, ...more] }) =>
    more.length === 0 && piece?.kind === "text" ? piece.text : null,
  );
  const [name, ...words] = texts;
  if ((name !== "echo" && name !== "printf") || words.includes(null) || words[0]?.startsWith("-") === true)
    return null;
  return { text: `${words.join(" ")}\n`, span: node.span };
}
