/**
 * Compiles the YAML in src into modules of plain data: programs.generated.ts from src/policy/programs, and
 * `<table>.generated.ts` for each table, beside its code. Then tries the examples of every row.
 */
import { createHash } from "node:crypto";
import { globSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { CompiledPrograms } from "./compile-programs.ts";
import { compileTables } from "./compile-tables.ts";

const ROOT = path.join(import.meta.dirname, "..");

const moduleOf = ({ programs, models, runOthers, runWhatFollows }: CompiledPrograms): string =>
  [
    "// Made by bin/programs.ts of the YAML files in this folder.",
    `export const PROGRAMS: Readonly<Record<string, number>> = ${JSON.stringify(programs)};`,
    `export const RUN_OTHERS: readonly string[] = ${JSON.stringify(runOthers)};`,
    `export const RUN_WHAT_FOLLOWS: readonly string[] = ${JSON.stringify(runWhatFollows)};`,
    `export const MODELS: readonly string[] = [\n${models.map((model) => JSON.stringify(model)).join(",\n")},\n];`,
    "",
  ].join("\n");

/** Writes the module atomically, and only if it changed: other processes may be loading it. */
function keep(module: string, text: string): void {
  const target = path.join(ROOT, module);
  try {
    if (readFileSync(target, "utf8") === text) return;
  } catch {
    // The module does not exist yet.
  }
  const whole = `${target}.${process.pid}`;
  writeFileSync(whole, text);
  renameSync(whole, target);
}

/** The policy version identifies the state of its sources, including tables. */
function versionModule(): string {
  const hash = createHash("sha256");
  const files = globSync("src/policy/**/*.{ts,yaml}", { cwd: ROOT }).filter(
    (file) => !file.endsWith(".generated.ts"),
  );
  for (const file of files.toSorted()) hash.update(`${file}\n`).update(readFileSync(path.join(ROOT, file)));
  return `// Made by bin/programs.ts of the sources of the policy.\nexport const POLICY_VERSION = "${hash.digest("hex").slice(0, 16)}";\n`;
}

const tables = compileTables();
for (const { module, text } of tables) keep(module, text);
// The following imports load policy modules, and with them the tables just written.
const { compilePrograms } = await import("./compile-programs.ts");
const compiled = compilePrograms();
keep("src/policy/programs/programs.generated.ts", moduleOf(compiled));
keep("src/policy/policy-version.generated.ts", versionModule());
const { wrongExamples } = await import("./program-examples.ts");
const { wrongTableExamples } = await import("./table-examples.ts");
const cases = tables.flatMap(({ examples }) => examples);
const wrong = [...wrongTableExamples(cases), ...wrongExamples(compiled.examples)];
if (wrong.length > 0) throw new Error(`examples of programs and tables:\n${wrong.join("\n")}`);
process.stderr.write(
  `${Object.keys(compiled.programs).length} programs, ${tables.length} tables, ${compiled.examples.length + cases.length} examples\n`,
);
