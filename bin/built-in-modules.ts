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
    return { code: LATE.reduce(whereUsed, asked) };
  },
};

/** Modules that take Node up to two milliseconds to load, and that most commands import but never call. */
const LATE = [
  "node:child_process",
  "node:fs/promises",
  "node:module",
  "node:os",
  "node:readline",
  "node:timers/promises",
  "node:zlib",
] as const;

/** The loader keeps no modules of Node's own: to ask it again is to ask Node, which has them by then. */
function whereUsed(code: string, name: (typeof LATE)[number]): string {
  const loaded = new RegExp(`^(?:let|const) (\\w+(?:\\$\\d+)?) = require\\("${name}"\\);\\n`, "m").exec(code);
  if (loaded === null) return code;
  const [line, variable = ""] = loaded;
  const used = `(?<![\\w$.])${variable.replaceAll("$", "\\$")}`;
  const others = code.replace(line, "");
  // Imported as a whole, it is used in other ways than by a name in it.
  if (new RegExp(`${used}(?![\\w$.])`).test(others)) return code;
  return others.replaceAll(new RegExp(`${used}\\.`, "g"), () => `require("${name}").`);
}

const DYNAMIC = /\bimport\(\s*["'`](node:[\w/]+)["'`]\s*\)/g;
