import { rowOf } from "../src/models/capabilities.ts";
import { UNCARRIED } from "../src/policy/carried-protocols.generated.ts";
import { codeObjection } from "../src/policy/containment.ts";
import { isTame } from "../src/policy/effects/environment.ts";
import { isLocalTool } from "../src/policy/effects/local-tools.ts";
import { filtersLines, placesOfNames, printsNumber } from "../src/policy/effects/assume.ts";
import { knownName } from "../src/policy/handoff-paths.ts";
import {
  findPrefix,
  prefixTable,
  secretAt,
  startupInHome,
  startupOfSystem,
} from "../src/policy/paths/path-place.ts";
import { READABLE } from "../src/policy/paths/system-paths.generated.ts";
import { isHarmless } from "../src/policy/programs/git-settings.ts";
import type { Arg } from "../src/policy/programs/program-model.ts";
import { parse } from "shell-quote";
import { nearName } from "../src/vet/known-names.ts";
import { uncarried } from "../src/policy/refusal-hints.ts";
import type { TableExample } from "./table-form.ts";

const workspace = "/home/dev/project";

const argsOf = (line: string): readonly Arg[] =>
  parse(line).map((word) => ({ kind: "literal", value: typeof word === "string" ? word : "", span: [0, 0] }));

/** For each table, the answer of the code that loads it. */
const ANSWERS: Readonly<Record<string, (given: string, row: string) => boolean>> = {
  SECRETS: (path, why) => secretAt(path) === why,
  HOME_STARTUP: (path, why) => startupInHome(path) === why,
  SYSTEM_STARTUP: (path, why) => startupOfSystem(path) === why,
  READABLE: (path, why) => findPrefix(prefixTable(READABLE), path) === why,
  DANGEROUS: (name, why) => knownName(name)?.reason === why,
  LOOK: (name, why) => knownName(name)?.reason === why,
  VARIABLES: (text) => {
    const [name = "", ...value] = text.split("=");
    return isTame(name, value.join("="), { folders: [workspace], workspace });
  },
  LOCAL_TOOLS: (line) => {
    const [name, ...args] = argsOf(line);
    return isLocalTool(name?.value ?? "", args, { folder: workspace, workspace, home: "/home" });
  },
  numbers: (line) => printsNumber(line.split(" ")),
  names: (line) => {
    const [name, ...args] = argsOf(line);
    return placesOfNames(name?.value ?? "", args) !== null;
  },
  filters: (line) => filtersLines(line.split(" ")),
  REACHING: (text) =>
    codeObjection(text, {
      workspace,
      home: "/home/dev",
      keeps: () => false,
    }),
  UNCARRIED: (line, kind) =>
    uncarried(line.split(" ")[0] ?? "", line) === UNCARRIED.find((row) => row.kind === kind)?.says,
  PROGRAM_WORDS: (setting) => isHarmless(setting),
  POPULAR: (given) => {
    const [ecosystem = "", name = ""] = given.split(" ");
    return nearName(name, ecosystem as Parameters<typeof nearName>[1]) !== undefined;
  },
  FAMILIES: (model, family) => (rowOf(model)?.prefix ?? "none") === family,
};

/** Examples with another answer than their tables state, one line each. */
export const wrongTableExamples = (examples: readonly TableExample[]): readonly string[] =>
  examples.flatMap(({ where, about, row, given, holds }) => {
    const answer = ANSWERS[about];
    if (answer === undefined) throw new Error(`nobody answers for ${about}`);
    if (answer(given, row) === holds) return [];
    return [`${where}: ${given}: ${holds ? "does not hold" : "holds"}`];
  });
