/** The parser's runtime: web-tree-sitter and its memory. Nothing of it is loaded before a file needs a grammar. */
import { createRequire } from "node:module";
import path from "node:path";
import type * as Package from "web-tree-sitter";

/** What is used of the web's names, which Node has and its types here do not tell. */
declare const WebAssembly: {
  readonly Memory: new (pages: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer };
};

export interface Runtime {
  /** A parser of one language. Rejects when its grammar is not installed or is of another ABI. */
  readonly parserOf: (wasm: string) => Promise<Package.Parser>;
  /** Bytes of its memory, which never shrinks: it goes with the runtime. */
  readonly memory: () => number;
}

const require = createRequire(import.meta.url);

/**
 * A runtime of its own. A parser that broke down leaves its runtime unusable, and the package keeps one for as long as
 * it is loaded: so it is loaded again, in the form that can be.
 */
export async function startRuntime(): Promise<Runtime> {
  Reflect.deleteProperty(require.cache, require.resolve("web-tree-sitter"));
  const { Language, Parser } = require("web-tree-sitter") as typeof Package;
  const grammars = path.join(path.dirname(require.resolve("@vscode/tree-sitter-wasm/package.json")), "wasm");
  // What the runtime would make by itself; made here so that its size can be seen. In pages of 64 KiB.
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
