import type { Plugin } from "rolldown";

/**
 * For an `import()`, Node looks at everything that a built-in module exports, and some of it is loaded when it is looked at:
 * `WebSocket` of node:http brings all of its fetch (40 ms of CPU and 13 MB), `webcrypto` of node:crypto, `promises` of
 * node:readline. Asked for by name, a module gives what is named and nothing else.
 */
export const builtInModules: Plugin = {
  name: "built-in-modules",
  renderChunk(code) {
    const asked = code.replaceAll(DYNAMIC, 'Promise.resolve(globalThis.process.getBuiltinModule("$1"))');
    const left = /\bimport\(?\s*["'`]node:[^"'`]*["'`]/.exec(asked);
    if (left !== null)
      throw new Error(`an import of a form that is not known: ${left[0]}; see bin/built-in-modules.ts`);
    return { code: asked };
  },
};

const DYNAMIC = /\bimport\(\s*["'`](node:[\w/]+)["'`]\s*\)/g;
