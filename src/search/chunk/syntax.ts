import type { Parser, Tree } from "web-tree-sitter";
import { type Grammar, GRAMMARS } from "./grammars.ts";
import { PARSE_MS, PARSED, parseSteps } from "./limits.ts";
import type { Mark } from "./marks.ts";
import { Walk } from "./walk.ts";

type Loaded =
  | { readonly kind: "parser"; readonly parser: Parser }
  | { readonly kind: "none"; readonly why: string };

/** Grammars, each loaded when the first file of its language comes. One parser serves all files of a language. */
export class Syntax implements Disposable {
  private readonly loaded = new Map<string, Promise<Loaded>>();
  private readonly ready = new Map<string, Loaded>();

  /** Ends when the language's grammar is loaded, or is known not to be loadable. */
  async load(language: string): Promise<void> {
    const grammar = GRAMMARS.get(language);
    if (grammar === undefined || this.ready.has(grammar.wasm)) return;
    const loading = this.loaded.get(grammar.wasm) ?? loadGrammar(grammar);
    this.loaded.set(grammar.wasm, loading);
    this.ready.set(grammar.wasm, await loading);
  }

  /** Grammars that could not be loaded or that broke down, with the reason: their languages are cut by lines. */
  missing(): readonly { readonly grammar: string; readonly why: string }[] {
    return [...this.ready].flatMap(([grammar, one]) =>
      one.kind === "none" ? [{ grammar, why: one.why }] : [],
    );
  }

  /** Where the parts of a text begin, or undefined when it has to be cut by lines. */
  marks(text: string, language: string): readonly Mark[] | undefined {
    const grammar = text.length > PARSED ? undefined : GRAMMARS.get(language);
    const loaded = grammar === undefined ? undefined : this.ready.get(grammar.wasm);
    if (grammar === undefined || loaded?.kind !== "parser") return undefined;
    try {
      const tree = parse(loaded.parser, text);
      if (tree === null) return undefined;
      try {
        return new Walk(text, grammar.rules).of(tree);
      } finally {
        tree.delete();
      }
    } catch (error) {
      this.abandon(grammar.wasm, loaded.parser, error);
      return undefined;
    }
  }

  /** What broke once is not used again: the state of the parser's memory is not known. */
  private abandon(wasm: string, parser: Parser, error: unknown): void {
    this.ready.set(wasm, { kind: "none", why: `its parser broke down: ${String(error)}` });
    // Also so that no finalizer touches it later, when nobody could catch what that throws.
    quietly(() => parser.delete());
  }

  [Symbol.dispose](): void {
    for (const one of this.ready.values()) if (one.kind === "parser") quietly(() => one.parser.delete());
    this.ready.clear();
    this.loaded.clear();
  }
}

async function loadGrammar(grammar: Grammar): Promise<Loaded> {
  try {
    const { parserOf } = await import("./runtime.ts");
    return { kind: "parser", parser: await parserOf(grammar.wasm) };
  } catch (error) {
    return { kind: "none", why: error instanceof Error ? error.message : String(error) };
  }
}

function quietly(done: () => void): void {
  try {
    done();
  } catch {
    // Of memory that is not used again.
  }
}

/** Null when it takes too long. */
function parse(parser: Parser, text: string): Tree | null {
  let left = parseSteps(text.length);
  const until = performance.now() + PARSE_MS;
  const stops = (): boolean => (left -= 1) < 0 || performance.now() > until;
  const tree = parser.parse(text, null, { progressCallback: stops });
  if (tree === null) parser.reset();
  return tree;
}
