import assert from "node:assert/strict";
import test from "node:test";
import { builtInModules } from "../../bin/built-in-modules.ts";

const render = (code: string): string => {
  const change = builtInModules.renderChunk as (code: string) => { readonly code: string };
  return change(code).code;
};

/** What a module gives that is loaded as the bundle would be. */
const loaded = (code: string): Promise<Readonly<Record<string, unknown>>> =>
  import(`data:text/javascript,${encodeURIComponent(render(code))}`) as Promise<
    Readonly<Record<string, unknown>>
  >;

const FORMS: Readonly<Record<string, string>> = {
  "one name": 'import { sep } from "node:path";\nexport const got = sep;',
  "another name for it": 'import { sep as other } from "node:path";\nexport const got = other;',
  "the whole of it": 'import path from "node:path";\nexport const got = path.sep;',
  "all of its names": 'import * as path from "node:path";\nexport const got = path.sep;',
  both: 'import path, { sep as other } from "node:path";\nexport const got = path.sep === other ? other : "";',
  "when it is used": 'export const got = (await import("node:path")).sep;',
  "behind its first use": 'export const got = sep;\nimport { sep } from "node:path";',
  "beside one that is called process":
    'import process from "node:process";\nimport { sep } from "node:path";\nexport const got = process.pid > 0 ? sep : "";',
};

for (const [form, code] of Object.entries(FORMS))
  test(`a built-in module is there, asked for by name: ${form}`, async () => {
    assert.doesNotMatch(render(code), /(?:from|import\() ?"node:/);
    assert.equal((await loaded(code))["got"], "/");
  });

test("a text that shows an import of several modules is not changed", async () => {
  const code = 'const shown = "first: import a from \\"x\\";";\nexport const got = shown;';
  assert.equal((await loaded(code))["got"], 'first: import a from "x";');
});

test("an import of a form that is not known ends the build with what it is", () => {
  for (const code of [
    'export { sep } from "node:path";',
    'import "node:path"; import { sep } from "node:path";',
    'const shown = `\n  import { sep } from "node:path";`;',
  ])
    assert.throws(() => render(code), /an import of a form that is not known: .*node:path/);
});
