import type { Node, Parser, Tree, TreeCursor } from "web-tree-sitter";
import type { ChunkKind } from "../search-store.ts";
import { GRAMMARS, type Rule, ruleAt, type Rules } from "./language-rules.ts";
import { isSeparated, jointKind, jointNames, type Mark, MAX_COUNT, opensLine } from "./marks.ts";
import type { Runtime } from "./runtime.ts";

/** After this many broken runtimes the rest is cut by lines: such a repository is not meant to be read. */
const MAX_RUNTIMES = 10;

type Loaded = (Engine & { readonly kind: "parser" }) | { readonly kind: "none"; readonly why: string };

/** Grammars, each loaded for the first file of its language. One parser serves all files of a language. */
export class Syntax implements Disposable {
  #runtime: Promise<Runtime> | undefined;
  #runtimes = 0;
  readonly #loading = new Map<string, Promise<Loaded>>();
  readonly #ready = new Map<string, Loaded>();

  /** Resolves when the language's grammar is loaded or known not to be loadable. */
  async load(language: string): Promise<void> {
    const grammar = GRAMMARS.get(language);
    if (grammar === undefined || this.#ready.has(grammar.wasm)) return;
    const loading = this.#loading.get(grammar.wasm) ?? this.#loadGrammar(grammar.wasm);
    this.#loading.set(grammar.wasm, loading);
    const loaded = await loading;
    // Not if everything was disposed meanwhile.
    if (this.#loading.get(grammar.wasm) === loading) this.#ready.set(grammar.wasm, loaded);
  }

  /** Grammars that could not be loaded, with the reason: files in their languages are cut by lines. */
  missing(): readonly { readonly grammar: string; readonly why: string }[] {
    return [...this.#ready].flatMap(([grammar, one]) =>
      one.kind === "none" ? [{ grammar, why: one.why }] : [],
    );
  }

  /** Where the parts of a text begin, or undefined when it has to be cut by lines. */
  marks(text: string, language: string): readonly Mark[] | undefined {
    const grammar = GRAMMARS.get(language);
    const loaded = grammar === undefined ? undefined : this.#ready.get(grammar.wasm);
    if (grammar === undefined || loaded?.kind !== "parser") return undefined;
    try {
      const tree = parse(loaded, text);
      if (tree === null) return undefined;
      try {
        return new Walk(text, grammar.rules).of(tree);
      } finally {
        tree.delete();
      }
    } catch {
      // A trap, or too much memory. The state of the parser is unknown, so nothing of this runtime is used again.
      this[Symbol.dispose]();
      return undefined;
    }
  }

  /** Drops all grammars; they are loaded again on demand. */
  [Symbol.dispose](): void {
    // Tried even if it fails: otherwise a finalizer would delete the parser later and throw where nothing can catch it.
    for (const one of this.#ready.values()) if (one.kind === "parser") quietly(() => one.parser.delete());
    this.#ready.clear();
    this.#loading.clear();
    this.#runtime = undefined;
  }

  async #loadGrammar(wasm: string): Promise<Loaded> {
    try {
      if (this.#runtime === undefined && (this.#runtimes += 1) > MAX_RUNTIMES)
        return { kind: "none", why: `${MAX_RUNTIMES} files crashed the parser` };
      this.#runtime ??= import("./runtime.ts").then(({ startRuntime }) => startRuntime());
      const { parserOf, memory } = await this.#runtime;
      return { kind: "parser", parser: await parserOf(wasm), memory };
    } catch (error) {
      return { kind: "none", why: error instanceof Error ? error.message : String(error) };
    }
  }
}

function quietly(done: () => void): void {
  try {
    done();
  } catch {
    // The memory is not used again.
  }
}

/**
 * The maximum cost of a parse, in counts, so that a busy machine cuts the same pieces. Code stays far below all limits.
 */
interface Budget {
  /** Progress calls of the parser, one per hundred operations. Code takes up to 0.02 per character. */
  steps: number;
  /**
   * Reads of `READ_UNITS` each: keeps the parser from lexing a text to its end again and again. Code reads each unit up
   * to ten times.
   */
  reads: number;
}

/** UTF-16 units that the parser reads at once. */
const READ_UNITS = 5120;

const budgetFor = (length: number): Budget => ({
  steps: 1000 + length * 0.03,
  reads: 100 + (length / READ_UNITS) * 30,
});

/** The runtime is dropped when the parser's memory exceeds this many bytes. A mebibyte of code needs a third of it. */
const MAX_MEMORY_BYTES = 384 * 2 ** 20;

/**
 * A parse that computes for longer is given up, whatever the counts. Processor time of other threads does not count.
 */
const MAX_MS = 3000;

/** A parser and the memory that it shares with the parsers of all other languages. */
interface Engine {
  readonly parser: Parser;
  /** Bytes used by all parsers together. */
  readonly memory: () => number;
}

function computedMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/**
 * The syntax tree of a text, or null if parsing would cost more than code does. The caller deletes the tree. Throws
 * when the parser cannot be used again.
 */
function parse({ parser, memory }: Engine, text: string): Tree | null {
  const left = budgetFor(text.length);
  const until = performance.now() + MAX_MS;
  const computed = computedMs();
  const isTooLong = (): boolean => performance.now() > until && computedMs() - computed > MAX_MS;
  const read = (index: number): string =>
    (left.reads -= 1) < 0 ? "" : text.slice(index, index + READ_UNITS);
  const stops = (): boolean => {
    left.steps -= 1;
    if (left.steps < 0 || left.reads < 0 || isTooLong()) return true;
    return memory() > MAX_MEMORY_BYTES;
  };
  const tree = parser.parse(read, null, { progressCallback: stops });
  if (memory() > MAX_MEMORY_BYTES) {
    tree?.delete();
    throw new RangeError("the parser used too much memory");
  }
  if (tree === null) parser.reset();
  else if (left.reads < 0) {
    // The parser was shown an end that is not the end of the text.
    tree.delete();
    return null;
  }
  // Reading names from the tree uses the same callback.
  left.reads = Infinity;
  return tree;
}

/** Levels of the syntax tree that are visited; deeper code is cut by lines. */
const MAX_DEPTH = 64;

/** Nodes of one syntax tree that are visited; the rest of the file is cut by lines. */
const MAX_VISITS = 50_000;

const SEMICOLON = 59;
const LICENCE = /copyright|licen[sc]e|spdx-/i;

/** A comment that waits for the declaration it describes. */
interface Note {
  readonly start: number;
  readonly end: number;
}

interface FoundNode {
  readonly start: number;
  readonly end: number;
  readonly rule: Rule | undefined;
}

/** Finds the marks of a file in its syntax tree. Visits only nodes that are too big or may contain declarations. */
class Walk {
  readonly #marks: Mark[] = [];
  readonly #text: string;
  readonly #rules: Rules;
  #visits = 0;

  constructor(text: string, rules: Rules) {
    this.#text = text;
    this.#rules = rules;
  }

  of(tree: Tree): readonly Mark[] {
    const cursor = tree.walk();
    try {
      this.#children(cursor, TOP);
    } finally {
      cursor.delete();
    }
    return this.#marks;
  }

  #children(cursor: TreeCursor, place: WalkPosition): void {
    if (place.depth > MAX_DEPTH || !cursor.gotoFirstChild()) return;
    let pending: Note | undefined;
    do {
      this.#visits += 1;
      const start = cursor.startIndex;
      const end = cursor.endIndex;
      const rule = ruleAt(this.#rules, cursor.nodeType, { text: this.#text, at: start });
      if (rule?.role === "note") {
        pending = this.#note({ start, end }, pending, place);
        continue;
      }
      if (pending !== undefined && isSeparated(this.#text, pending.end, start))
        pending = this.#loose(pending, place);
      this.#node(cursor, { start: pending?.start ?? start, end, rule }, place);
      pending = undefined;
    } while (this.#visits < MAX_VISITS && cursor.gotoNextSibling());
    if (pending !== undefined) this.#loose(pending, place);
    cursor.gotoParent();
  }

  #ruleOf(cursor: TreeCursor): Rule | undefined {
    return ruleAt(this.#rules, cursor.nodeType, { text: this.#text, at: cursor.startIndex });
  }

  /** A comment joins the one above it. A comment behind code on the same line is part of that line. */
  #note(note: Note, pending: Note | undefined, place: WalkPosition): Note | undefined {
    if (pending === undefined) return opensLine(this.#text, note.start) ? note : undefined;
    if (!isSeparated(this.#text, pending.end, note.start)) return { start: pending.start, end: note.end };
    this.#loose(pending, place);
    return note;
  }

  /** A comment that describes nothing below it. A licence at the head of a file goes with the imports. */
  #loose(note: Note, place: WalkPosition): undefined {
    const head =
      place.depth === 0 && this.#marks.length === 0 && LICENCE.test(this.#text.slice(note.start, note.end));
    this.#mark(note.start, head ? { ...place, kind: "imports" } : place);
  }

  #mark(at: number, place: Pick<WalkPosition, "kind" | "names" | "scope">): void {
    this.#marks.push({ at, kind: place.kind, names: place.names, own: false, scope: place.scope });
  }

  #node(cursor: TreeCursor, found: FoundNode, place: WalkPosition): void {
    const { start, end, rule } = found;
    const inner = { ...place, depth: place.depth + 1 };
    switch (rule?.role) {
      case undefined:
        this.#mark(start, place);
        if (end - start > MAX_COUNT) this.#children(cursor, { ...inner, members: false, deep: true });
        return;
      case "imports":
        this.#mark(start, { ...place, kind: "imports", names: [] });
        return;
      case "open":
        this.#opened(cursor, found, inner);
        return;
      case "wrap":
        this.#wrapped(cursor, found, place);
        return;
      default:
        if (rule !== undefined) this.#declared(cursor, { ...found, rule }, place);
    }
  }

  #opened(cursor: TreeCursor, { start, end }: FoundNode, place: WalkPosition): void {
    // A namespace for the whole file has no nodes inside.
    if (this.#text.charCodeAt(end - 1) === SEMICOLON) {
      this.#mark(start, { ...place, kind: "imports", names: [] });
      return;
    }
    const from = this.#marks.length;
    this.#mark(start, place);
    if (!place.deep || end - start > MAX_COUNT) this.#children(cursor, place);
    if (end - start <= MAX_COUNT) this.#collapse(from);
  }

  /** A wrapper and the declaration inside it get one mark. */
  #wrapped(cursor: TreeCursor, { start, end }: FoundNode, place: WalkPosition): void {
    const levels = this.#toDeclaration(cursor);
    const rule = this.#ruleOf(cursor);
    if (levels > 0 && rule !== undefined)
      this.#node(cursor, { start, end, rule }, { ...place, depth: place.depth + levels });
    for (let level = 0; level < levels; level += 1) cursor.gotoParent();
    if (levels > 0) return;
    this.#mark(start, place);
    if (end - start > MAX_COUNT)
      this.#children(cursor, { ...place, members: false, deep: true, depth: place.depth + 1 });
  }

  /** Moves down to the first declaration inside, if there is one. Returns the number of levels moved. */
  #toDeclaration(cursor: TreeCursor): number {
    if (!cursor.gotoFirstChild()) return 0;
    do {
      this.#visits += 1;
      const role = this.#ruleOf(cursor)?.role;
      if (role === "leaf" || role === "hold" || role === "wrap") return 1;
    } while (this.#visits < MAX_VISITS && cursor.gotoNextSibling());
    cursor.gotoParent();
    return 0;
  }

  #declared(cursor: TreeCursor, found: FoundNode & { readonly rule: Rule }, place: WalkPosition): void {
    const { start, end, rule } = found;
    const big = end - start > MAX_COUNT;
    const { kind, shown, declared } = declaredBy(cursor.currentNode, rule, place);
    const own = declared.length > 0;
    const names = own ? declared : place.names;
    const from = this.#marks.length;
    this.#marks.push({ at: start, kind: shown, names, own, scope: place.scope });
    const holds = rule.role === "hold";
    if (!big && !holds) return;
    const members = holds && rule.kind !== "code";
    const scope = declared[0] ?? place.scope;
    this.#children(cursor, { scope, names, kind, members, deep: !holds, depth: place.depth + 1 });
    if (!big) this.#collapse(from, kind);
  }

  /** Merges the marks from index `from` on into a single one with all their names. */
  #collapse(from: number, kind?: ChunkKind): void {
    const marks = this.#marks.splice(from);
    const [first] = marks;
    if (first === undefined) return;
    const own = marks.filter((mark) => mark.own).map((mark) => mark.kind);
    this.#marks.push({
      ...first,
      kind: kind ?? (own.length === 0 ? first.kind : jointKind(own)),
      ...jointNames(marks),
    });
  }
}

/** The position of the walk. */
interface WalkPosition {
  /** The names of the surrounding declarations, joined by dots. */
  readonly scope: string;
  /** The names for parts here that declare nothing. */
  readonly names: readonly string[];
  readonly kind: ChunkKind;
  /** Directly in a class, where a function is a method. */
  readonly members: boolean;
  /** In a function, whose inside is visited only because it is too big. */
  readonly deep: boolean;
  readonly depth: number;
}

const TOP: WalkPosition = { scope: "", names: [], kind: "code", members: false, deep: false, depth: 0 };

interface Declared {
  readonly kind: ChunkKind;
  /** The kind of the node's lines: an assignment inside a function is a step of the function. */
  readonly shown: ChunkKind;
  readonly declared: readonly string[];
}

/** What a node declares at its place. */
function declaredBy(node: Node, rule: Rule, place: WalkPosition): Declared {
  const ownKind = rule.kindOf?.(node) ?? rule.kind;
  const kind = ownKind === "function" && place.members ? "method" : ownKind;
  if (place.deep && kind === "code") return { kind, shown: place.kind, declared: [] };
  return { kind, shown: kind, declared: rule.names(node).map((name) => qualifiedName(name, rule, place)) };
}

/** A name qualified by its scope. A constructor is named like its class, and a struct like its typedef. */
function qualifiedName(name: string, rule: Rule, { scope }: WalkPosition): string {
  if (scope === "" || rule.free === true) return name;
  return scope === name || scope.endsWith(`.${name}`) ? scope : `${scope}.${name}`;
}
