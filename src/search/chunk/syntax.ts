import type { Parser, Tree } from "web-tree-sitter";
import { type Grammar, GRAMMARS } from "./grammars.ts";
import type { Mark } from "./marks.ts";
import { Walk } from "./walk.ts";

/** Steps of a parse for a file of this size, counted by the parser in hundreds: many times what code takes. */
const steps = (length: number): number => 2000 + length / 2;

/** However fast the machine, no parse holds it longer. Code takes some milliseconds. */
const SLOWEST_MS = 5000;

/** So many broken parses and a language is cut by lines from then on. */
const BROKEN = 3;

type Loaded =
  | { readonly kind: "parser"; parser: Parser; broken: number }
  | { readonly kind: "none"; readonly why: string };

/** Grammars, each loaded when the first file of its language comes. One parser serves all files of a language. */
export class Syntax implements Disposable {
  private readonly loaded = new Map<string, Promise<Loaded>>();
  private readonly ready = new Map<string, Loaded>();

  /** Whether the language is cut by syntax. */
  knows(language: string): boolean {
    return GRAMMARS.has(language);
  }

  /** Ends when the language's grammar is loaded, or is known not to be loadable. */
  async load(language: string): Promise<void> {
    const grammar = GRAMMARS.get(language);
    if (grammar === undefined || this.ready.has(grammar.wasm)) return;
    const loading = this.loaded.get(grammar.wasm) ?? loadGrammar(grammar);
    this.loaded.set(grammar.wasm, loading);
    this.ready.set(grammar.wasm, await loading);
  }

  /** Languages that are cut by lines because their grammar could not be loaded, with the reason. */
  missing(): readonly { readonly grammar: string; readonly why: string }[] {
    return [...this.ready].flatMap(([grammar, one]) =>
      one.kind === "none" ? [{ grammar, why: one.why }] : [],
    );
  }

  /** Where the parts of a text begin, or undefined when it has to be cut by lines. */
  marks(text: string, language: string): readonly Mark[] | undefined {
    const grammar = GRAMMARS.get(language);
    const loaded = grammar === undefined ? undefined : this.ready.get(grammar.wasm);
    if (grammar === undefined || loaded?.kind !== "parser" || loaded.broken >= BROKEN) return undefined;
    try {
      const tree = parse(loaded.parser, text);
      if (tree === null) return undefined;
      try {
        return new Walk(text, grammar.rules).of(tree);
      } finally {
        tree.delete();
      }
    } catch {
      // The parser's own memory is bounded: what is too much for it ends here, and its state is not used again.
      loaded.broken += 1;
      return undefined;
    }
  }

  [Symbol.dispose](): void {
    for (const one of this.ready.values()) if (one.kind === "parser") one.parser.delete();
    this.ready.clear();
    this.loaded.clear();
  }
}

async function loadGrammar(grammar: Grammar): Promise<Loaded> {
  try {
    const { parserOf } = await import("./runtime.ts");
    return { kind: "parser", parser: await parserOf(grammar.wasm), broken: 0 };
  } catch (error) {
    return { kind: "none", why: error instanceof Error ? error.message : String(error) };
  }
}

/** Null when it takes too long, by its own count of steps; the clock is for machines that stand still. */
function parse(parser: Parser, text: string): Tree | null {
  let left = steps(text.length);
  const until = performance.now() + SLOWEST_MS;
  const stops = (): boolean => (left -= 1) < 0 || performance.now() > until;
  const tree = parser.parse(text, null, { progressCallback: stops });
  if (tree === null) parser.reset();
  return tree;
}
