/** Makes src/policy/programs/programs.generated.ts of the YAML files beside it, and tries the examples of every row. */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type CompiledPrograms, compilePrograms, PROGRAM_FOLDER } from "./compile-programs.ts";

const target = path.join(PROGRAM_FOLDER, "programs.generated.ts");

const moduleOf = ({ programs, models, runOthers, runWhatFollows }: CompiledPrograms): string =>
  [
    "// Made by bin/programs.ts of the YAML files in this folder.",
    `export const PROGRAMS: Readonly<Record<string, number>> = ${JSON.stringify(programs)};`,
    `export const RUN_OTHERS: readonly string[] = ${JSON.stringify(runOthers)};`,
    `export const RUN_WHAT_FOLLOWS: readonly string[] = ${JSON.stringify(runWhatFollows)};`,
    `export const MODELS: readonly string[] = [\n${models.map((model) => JSON.stringify(model)).join(",\n")},\n];`,
    "",
  ].join("\n");

function keep(text: string): void {
  try {
    if (readFileSync(target, "utf8") === text) return;
  } catch {
    // There is none yet.
  }
  const whole = `${target}.${process.pid}`;
  writeFileSync(whole, text);
  renameSync(whole, target);
}

const compiled = compilePrograms();
keep(moduleOf(compiled));
// The policy loads what was made just now.
const { wrongExamples } = await import("./program-examples.ts");
const wrong = wrongExamples(compiled.examples);
if (wrong.length > 0) throw new Error(`examples of programs:\n${wrong.join("\n")}`);
process.stderr.write(
  `${Object.keys(compiled.programs).length} programs, ${compiled.examples.length} examples\n`,
);
