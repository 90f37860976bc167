import type { Model } from "../model.ts";
import { BUILDS } from "./builds.ts";
import { COMPILERS } from "./compilers.ts";
import { JVM } from "./jvm.ts";
import { DOTNET_AND_SWIFT } from "./dotnet-swift.ts";
import { SCRIPTING } from "./scripting.ts";
import { OTHER_LANGUAGES } from "./other-languages.ts";
import { TEXT_LINTS } from "./text-lints.ts";
import { SYSTEM_PACKAGES } from "./system-packages.ts";
import { BUN_AND_DENO } from "./bun-deno.ts";
import { GO_TOOLS } from "./go.ts";
import { guarded, type Manners } from "./guard.ts";
import { JAVASCRIPT } from "./javascript.ts";
import { NODES } from "./node.ts";
import { NPM_TOOLS } from "./npm.ts";
import { PACKAGE_MANAGERS } from "./package-managers.ts";
import { PHP } from "./php.ts";
import { PYTHON_LINTS } from "./python-lints.ts";
import { MODULES } from "./python-modules.ts";
import { PYTHON_PACKAGES } from "./python-packages.ts";
import { PYTHON_TESTS } from "./pytest.ts";
import { PYTHONS } from "./python.ts";
import { RUBY } from "./ruby.ts";
import { RUST } from "./rust.ts";

const PLAIN: Manners = { splitsLetters: false, readsArguments: false, local: false };
const JAVASCRIPT_MANNERS: Manners = { splitsLetters: true, readsArguments: false, local: false };
const OTHERS: Manners = { splitsLetters: false, readsArguments: true, local: false };
const LOCAL: Manners = { ...OTHERS, local: true };

/** The tools of projects, by ecosystem. */
export const PROJECT: readonly Readonly<Record<string, Model>>[] = [
  ...[NPM_TOOLS, BUN_AND_DENO, NODES].map((table) => guarded(table, JAVASCRIPT_MANNERS)),
  ...[PACKAGE_MANAGERS, JAVASCRIPT].map((table) => guarded(table, { ...JAVASCRIPT_MANNERS, local: true })),
  ...[SYSTEM_PACKAGES].map((table) => guarded(table, PLAIN)),
  ...[PYTHONS, MODULES, GO_TOOLS, COMPILERS, TEXT_LINTS].map((table) => guarded(table, OTHERS)),
  ...[
    PYTHON_TESTS,
    PYTHON_LINTS,
    PYTHON_PACKAGES,
    RUST,
    BUILDS,
    JVM,
    DOTNET_AND_SWIFT,
    RUBY,
    PHP,
    SCRIPTING,
    OTHER_LANGUAGES,
  ].map((table) => guarded(table, LOCAL)),
];
