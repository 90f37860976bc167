import { CSHARP, JAVA, PHP } from "./rules/class-based.ts";
import { PYTHON, RUBY } from "./rules/dynamic.ts";
import type { Rules } from "./rules/rule.ts";
import { SCRIPT } from "./rules/script.ts";
import { C, GO, RUST } from "./rules/system.ts";

/** How a language is parsed: the grammar's name in its package, and what its nodes are. */
export interface Grammar {
  readonly wasm: string;
  readonly rules: Rules;
}

/** The languages that are cut by syntax. C is read by the grammar of C++. */
export const GRAMMARS: ReadonlyMap<string, Grammar> = new Map([
  ["typescript", { wasm: "typescript", rules: SCRIPT }],
  ["tsx", { wasm: "tsx", rules: SCRIPT }],
  ["javascript", { wasm: "javascript", rules: SCRIPT }],
  ["python", { wasm: "python", rules: PYTHON }],
  ["go", { wasm: "go", rules: GO }],
  ["rust", { wasm: "rust", rules: RUST }],
  ["java", { wasm: "java", rules: JAVA }],
  ["c", { wasm: "cpp", rules: C }],
  ["cpp", { wasm: "cpp", rules: C }],
  ["csharp", { wasm: "c-sharp", rules: CSHARP }],
  ["ruby", { wasm: "ruby", rules: RUBY }],
  ["php", { wasm: "php", rules: PHP }],
]);
