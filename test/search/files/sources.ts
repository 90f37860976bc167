/** A small file of each language, with a path that reveals the language. */
export const SOURCES: Readonly<Record<string, string>> = {
  "store.ts": `import a from "a";\n\n/** Holds. */\nexport class Store<T> {\n  #map = new Map();\n  constructor() {}\n  close(): void {}\n  onEnd = () => {};\n}\n\nexport interface Options { a: string }\nexport const f = (x: number) => x, g = 1;\nexport default function () {}\n`,
  "store.tsx": `import React from "react";\nexport const View = () => <p>{"a"}</p>;\n`,
  "store.js": `const fs = require("fs");\nexports.go = function () {};\nStore.prototype.end = function () {};\nmodule.exports = { a() {} };\n`,
  "store.py": `"""Doc."""\nimport os\n\nLIMIT = 1\n\n\n@dec\nclass Store(Base):\n    """Holds."""\n\n    @property\n    def size(self):\n        return 1\n\n    async def close(self):\n        pass\n\n\nif X:\n    def odd():\n        pass\n`,
  "store.go": `package a\n\nimport "fmt"\n\n// Server serves.\ntype Server struct{ a int }\n\n// Handle handles.\nfunc (s *Server) Handle() {}\n\nfunc (l List[T]) Len() int { return 0 }\n\nconst (\n\tA = 1\n\tB = 2\n)\n\nfunc main() {}\n`,
  "store.rs": `//! Doc.\nuse std::fmt;\n\n#[derive(Debug)]\npub struct Foo<T> { a: T }\n\nimpl<T> fmt::Display for Foo<T> {\n    /// Doc.\n    fn fmt(&self) {}\n}\n\nmod inner {\n    pub fn go() {}\n}\nmacro_rules! m { () => {} }\n`,
  "Store.java": `package a;\n\nimport b.C;\n\n/** Doc. */\n@Ann\npublic class Store {\n  private int x;\n  Store() {}\n  public void close() {}\n  enum E { A }\n}\n`,
  "store.cpp": `#include <a>\nnamespace fmt {\ntemplate <typename T> class V {\n public:\n  int go() const { return 1; }\n};\n}\nint A::b(int x) { return x; }\nA::~A() {}\n`,
  "store.c": `#include <a.h>\n#define LIMIT 1\ntypedef struct node { int a; } node_t;\nstatic char *name(void) { return 0; }\n`,
  "Store.cs": `using System;\n\nnamespace A.B;\n\n/// <summary>Doc.</summary>\npublic class Store\n{\n    public int Size { get; set; }\n    public void Close()\n    {\n    }\n}\n`,
  "store.rb": `require "a"\n\nmodule A\n  # Doc.\n  class Store < Base\n    X = 1\n    def close; end\n    def self.open; end\n    private def quiet; end\n  end\nend\n`,
  "store.php": `<?php\nnamespace A\\B;\n\nuse C\\D;\n\n/** Doc. */\nfinal class Store {\n  const X = 1;\n  public function close() {}\n}\nfunction top() {}\n`,
  "store.sh": `#!/bin/sh\n. ./lib.sh\n\n# Doc.\nclose() {\n  echo 1\n}\n\nfunction open {\n  echo 2\n}\nclose\n`,
};
