import type { Parser, Tree } from "web-tree-sitter";
import { GRAMMARS } from "./language-rules.ts";
import type { Mark } from "./marks.ts";
import type { Runtime } from "./runtime.ts";
import { Walk } from "./syntax-walk.ts";

/** After this many broken runtimes the rest is cut by lines: such a repository is not meant to be read. */
const RUNTIMES = 10;

type Loaded = (Engine & { readonly kind: "parser" }) | { readonly kind: "none"; readonly why: string };

/** Grammars, each loaded for the first file of its language. One parser serves all files of a language. */
export class Syntax implements Disposable {
  private runtime: Promise<Runtime> | undefined;
  private runtimes = 0;
  private readonly loading = new Map<string, Promise<Loaded>>();
  private readonly ready = new Map<string, Loaded>();

  /** Resolves when the language's grammar is loaded or known not to be loadable. */
  async load(language: string): Promise<void> {
    const grammar = GRAMMARS.get(language);
    if (grammar === undefined || this.ready.has(grammar.wasm)) return;
    const loading = this.loading.get(grammar.wasm) ?? this.loadGrammar(grammar.wasm);
    this.loading.set(grammar.wasm, loading);
    const loaded = await loading;
    // Not if everything was disposed meanwhile.
    if (this.loading.get(grammar.wasm) === loading) this.ready.set(grammar.wasm, loaded);
  }

  /** Grammars that could not be loaded, with the reason: files in their languages are cut by lines. */
  missing(): readonly { readonly grammar: string; readonly why: string }[] {
    return [...this.ready].flatMap(([grammar, one]) =>
      one.kind === "none" ? [{ grammar, why: one.why }] : [],
    );
  }

  /** Where the parts of a text begin, or undefined when it has to be cut by lines. */
  marks(text: string, language: string): readonly Mark[] | undefined {
    const grammar = GRAMMARS.get(language);
    const loaded = grammar === undefined ? undefined : this.ready.get(grammar.wasm);
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
    for (const one of this.ready.values()) if (one.kind === "parser") quietly(() => one.parser.delete());
    this.ready.clear();
    this.loading.clear();
    this.runtime = undefined;
  }

  private async loadGrammar(wasm: string): Promise<Loaded> {
    try {
      if (this.runtime === undefined && (this.runtimes += 1) > RUNTIMES)
        return { kind: "none", why: `${RUNTIMES} files crashed the parser` };
      this.runtime ??= import("./runtime.ts").then(({ startRuntime }) => startRuntime());
      const { parserOf, memory } = await this.runtime;
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
   * Reads of `READ` units each: keeps the parser from lexing a text to its end again and again. Code reads each unit up
   * to ten times.
   */
  reads: number;
}

/** UTF-16 units that the parser reads at once. */
const READ = 5120;

const budgetFor = (length: number): Budget => ({
  steps: 1000 + length * 0.03,
  reads: 100 + (length / READ) * 30,
});

/** The runtime is dropped when the parser's memory exceeds this many bytes. A mebibyte of code needs a third of it. */
const MEMORY = 384 * 2 ** 20;

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
  const read = (index: number): string => ((left.reads -= 1) < 0 ? "" : text.slice(index, index + READ));
  const stops = (): boolean => {
    left.steps -= 1;
    if (left.steps < 0 || left.reads < 0 || isTooLong()) return true;
    return memory() > MEMORY;
  };
  const tree = parser.parse(read, null, { progressCallback: stops });
  if (memory() > MEMORY) {
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
