import { readFileSync, statSync } from "node:fs";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { JsonEnds } from "../json-text.ts";
import { type Entry, entryFrom, type Scenario, ScenarioFault } from "./scenario.ts";

const LARGEST = 16 * 2 ** 20;
const REMEDY = "docs/scripted-models.md explains the form; examples/ has scenarios.";

export function readScenario(file: string): Scenario {
  return scenarioFrom(textOf(file), file);
}

/** JSON values one after another, each from the beginning of a line; between them, lines that begin with // are comments. */
export function scenarioFrom(text: string, file: string): Scenario {
  const steps: Scenario["steps"][number][] = [];
  let capabilities: Scenario["capabilities"] = {};
  for (const { json, line } of valuesIn(text, file)) {
    const entry = entryAt(json, line, file);
    if (entry.kind === "step") steps.push(entry.step);
    else if (steps.length === 0) capabilities = entry.header;
    else throw fault(file, line, "capabilities stand before the first step");
  }
  if (steps.length === 0) throw fault(file, 1, "there is no step");
  return { file, steps, capabilities };
}

function* valuesIn(text: string, file: string): Generator<{ readonly json: string; readonly line: number }> {
  let open: { ends: JsonEnds; lines: string[]; line: number } | null = null;
  for (const [index, line] of text.split("\n").entries()) {
    const bare = line.trim();
    if (open === null && (bare === "" || bare.startsWith("//"))) continue;
    open ??= { ends: new JsonEnds(), lines: [], line: index + 1 };
    open.lines.push(line);
    open.ends.push(line);
    if (open.ends.open) continue;
    yield { json: open.lines.join("\n"), line: open.line };
    open = null;
  }
  if (open !== null) throw fault(file, open.line, "a bracket or a quote that opens here is never closed");
}

function entryAt(json: string, line: number, file: string): Entry {
  try {
    return entryFrom(JSON.parse(json), line);
  } catch (thrown) {
    if (thrown instanceof ScenarioFault) throw fault(file, line, thrown.message);
    throw fault(file, line, `this is no JSON: ${reasonOf(thrown)}`);
  }
}

const fault = (file: string, line: number, reason: string): HarnessError =>
  new HarnessError(EXIT.usage, `${file}:${line}: ${reason}`, REMEDY);

function textOf(file: string): string {
  try {
    const { size } = statSync(file);
    if (size > LARGEST) throw new Error(`it has ${size} bytes, more than any scenario`);
    return readFileSync(file, "utf8");
  } catch (thrown) {
    throw new HarnessError(EXIT.usage, `cannot read the scenario ${file}: ${reasonOf(thrown)}`, REMEDY);
  }
}
