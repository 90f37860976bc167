/** The parser's runtime: web-tree-sitter and its memory. It is loaded only when a file needs a grammar. */
import { createRequire } from "node:module";
import path from "node:path";
import type * as Package from "web-tree-sitter";

/** The part of the web's API that is used here. Node has it, but Node's types do not declare it. */
declare const WebAssembly: {
  readonly Memory: new (pages: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer };
};

export interface Runtime {
  /** A parser for one language. Rejects if its grammar is not installed or has another ABI. */
  readonly parserOf: (wasm: string) => Promise<Package.Parser>;
  /** Bytes of the runtime's memory, which never shrinks and is freed with the runtime. */
  readonly memory: () => number;
}

const require = createRequire(import.meta.url);

/**
 * Starts a separate runtime. A parser that breaks leaves its runtime unusable, and the package keeps one runtime for as
 * long as it is loaded: the package is therefore loaded again, in its CommonJS form, which allows that.
 */
export async function startRuntime(): Promise<Runtime> {
  Reflect.deleteProperty(require.cache, require.resolve("web-tree-sitter"));
  const { Language, Parser } = require("web-tree-sitter") as typeof Package;
  const grammars = path.join(path.dirname(require.resolve("@vscode/tree-sitter-wasm/package.json")), "wasm");
  // The runtime would create this memory itself; created here so that its size can be read. In pages of 64 KiB.
  const memory = new WebAssembly.Memory({ initial: 512, maximum: 32_768 });
  await Parser.init({
    wasmMemory: memory,
    locateFile: () => require.resolve("web-tree-sitter/web-tree-sitter.wasm"),
    printErr: () => undefined,
  });
  return {
    parserOf: async (wasm) =>
      new Parser().setLanguage(await Language.load(path.join(grammars, `tree-sitter-${wasm}.wasm`))),
    memory: () => memory.buffer.byteLength,
  };
}
