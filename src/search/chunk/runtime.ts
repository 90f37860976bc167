/** The parser's runtime. Loaded by import() only, once for a process, by the first file that needs a grammar. */
import { createRequire } from "node:module";
import path from "node:path";
import { Language, Parser } from "web-tree-sitter";

const require = createRequire(import.meta.url);

// Bundled code lies in another folder than the runtime's wasm, so that it is told where that is.
await Parser.init({
  locateFile: () => require.resolve("web-tree-sitter/web-tree-sitter.wasm"),
  printErr: () => undefined,
});

const GRAMMARS = path.join(path.dirname(require.resolve("@vscode/tree-sitter-wasm/package.json")), "wasm");

/** A parser of one language. Rejects when its grammar is not installed or is of another ABI. */
export async function parserOf(wasm: string): Promise<Parser> {
  const file = path.join(GRAMMARS, `tree-sitter-${wasm}.wasm`);
  return new Parser().setLanguage(await Language.load(file));
}
