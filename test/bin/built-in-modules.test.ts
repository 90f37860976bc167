import assert from "node:assert/strict";
import test from "node:test";
import { runInThisContext } from "node:vm";
import { builtInModules } from "../../bin/built-in-modules.ts";

const render = (code: string): string => {
  const change = builtInModules.renderChunk as (code: string) => { readonly code: string };
  return change(code).code;
};

for (const quote of ['"', "'", "`"])
  test(`a dynamic import of a built-in module is replaced: ${quote}`, async () => {
    const code = render(`import(${quote}node:path/posix${quote})`);
    assert.doesNotMatch(code, /import/);
    const got = (await runInThisContext(code)) as { readonly sep: string };
    assert.equal(got.sep, "/");
  });

test("other dynamic imports stay as they are", () => {
  const code = 'const a = () => import("./chunks/a.cjs"), b = (c) => import(c);';
  assert.equal(render(code), code);
});

test("an unknown form of import of a built-in module ends the build and is quoted", () => {
  for (const code of ['import("node:path", {})', 'import "node:path";', "import(`node:${name}`)"])
    assert.throws(() => render(code), /an import of a form that is not known: .*node:/);
});
