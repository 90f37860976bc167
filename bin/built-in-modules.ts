import type { Plugin } from "rolldown";

/**
 * For an `import`, Node looks at everything that a built-in module exports, and some of it is loaded when it is looked at:
 * `WebSocket` of node:http brings all of its fetch (40 ms of CPU and 13 MB), `webcrypto` of node:crypto, `promises` of
 * node:readline, the streams of node:fs. Asked for by name, a module gives what is named and nothing else.
 */
export const builtInModules: Plugin = {
  name: "built-in-modules",
  renderChunk(code) {
    const first: string[] = [];
    const rest = code
      .replaceAll(STATIC, (_, words: string, name: string) => {
        first.push(declared(words, name));
        return "";
      })
      .replaceAll(DYNAMIC, (_, name: string) => `Promise.resolve(${by(name)})`);
    // Imports are there before anything else, wherever they stand.
    const asked = first.join("") + rest;
    const left = /\b(?:from|import\(?)\s*["'`]node:[^"'`]*["'`]/.exec(asked);
    if (left !== null)
      throw new Error(`an import of a form that is not known: ${left[0]}; see bin/built-in-modules.ts`);
    return { code: asked };
  },
};

/** As the bundler writes it, each on a line of its own: a text that holds one stays as it is. */
const STATIC = /^import ([^"'`;\n]+) from "(node:[\w/]+)";$/gm;
const DYNAMIC = /\bimport\(["'`](node:[\w/]+)["'`]\)/g;

/** A module may have named one of them `process`. */
const by = (name: string): string => `globalThis.process.getBuiltinModule("${name}")`;

/** Of `a`, `* as a`, `{b as c}` or `a, {b as c}`. */
function declared(words: string, name: string): string {
  const [, whole = "", named = ""] = /^(?:(?:\*\s*as\s+)?([\w$]+))?\s*,?\s*(?:\{(.*)\})?$/s.exec(words) ?? [];
  const of = named === "" ? [] : [`{${named.replaceAll(/\s+as\s+/g, ":")}}`];
  return `const ${[whole, ...of]
    .filter((each) => each !== "")
    .map((each, at) => `${each}=${at === 0 ? by(name) : whole}`)
    .join()};`;
}
