import type { Plugin } from "rolldown";

/**
 * For an `import()`, Node reads every export of a built-in module, and some exports are loaded when they are read:
 * `WebSocket` of node:http loads all of fetch (40 ms of CPU and 13 MB); `webcrypto` of node:crypto and `promises` of
 * node:readline are others. `getBuiltinModule` reads only the exports that are used.
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
