import type { Parser, Tree } from "web-tree-sitter";

/** What a parse may cost. Counts, so that a busy machine cuts no other pieces. Code stays far below all of them. */
interface Budget {
  /** In the hundreds that the parser counts by. Code takes up to 0.02 for a character. */
  steps: number;
  /** Of `READ` units each, so that a text is not lexed to its end again and again. Code reads each unit up to ten times. */
  reads: number;
}

/** UTF-16 units that the parser takes at once. */
const READ = 5120;

const budgetFor = (length: number): Budget => ({
  steps: 1000 + length * 0.03,
  reads: 100 + (length / READ) * 30,
});

/** Bytes of the parser's memory above which its runtime is dropped. A mebibyte of code needs a third of it. */
const MEMORY = 384 * 2 ** 20;

/** For a machine that all but stands still: what takes longer is given up whatever the counts. */
const LONGEST_MS = 3000;

/** Of which the parsers of all languages are made. */
export interface Engine {
  readonly parser: Parser;
  /** Bytes of memory, of all parsers together. */
  readonly memory: () => number;
}

/** The tree of a text, or null when it would cost more than code does. To be deleted. Throws when the parser cannot be used again. */
export function parse({ parser, memory }: Engine, text: string): Tree | null {
  const left = budgetFor(text.length);
  const until = performance.now() + LONGEST_MS;
  const read = (index: number): string => ((left.reads -= 1) < 0 ? "" : text.slice(index, index + READ));
  const stops = (): boolean => {
    left.steps -= 1;
    if (left.steps < 0 || left.reads < 0 || performance.now() > until) return true;
    return memory() > MEMORY;
  };
  const tree = parser.parse(read, null, { progressCallback: stops });
  if (memory() > MEMORY) {
    tree?.delete();
    throw new RangeError("the parser used too much memory");
  }
  if (tree === null) parser.reset();
  else if (left.reads < 0) {
    // It saw an end where none is.
    tree.delete();
    return null;
  }
  // Names are read from the text through the tree.
  left.reads = Infinity;
  return tree;
}
