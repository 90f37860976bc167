import type { Found, Model, Use } from "../model.ts";
import { fixedEffect } from "../roles.ts";
import { always, forwards } from "./parts.ts";

/** The entry of the table that judges what is handed on to a package's tests. */
export const TEST_WORDS = "npm test --";

const handsOn = forwards(TEST_WORDS, 1);

/** What `run` and the like start: the tests, another script, or nothing but a list. */
export function runsScript(use: Use): readonly Found[] {
  const [script] = use.operands;
  if (script === undefined) return [fixedEffect("settings", use.folder, use.program)];
  if (script.kind !== "literal" || script.value !== "test")
    return [fixedEffect("project", use.folder, use.program)];
  return [fixedEffect("check", use.folder, use.program), ...handsOn(use)];
}

/** `test` of the package managers that hand on everything behind it. */
export const TESTS: Model = {
  // The script gets `--help` too.
  tells: "",
  reads: (use) => [fixedEffect("check", use.folder, use.program), ...forwards(TEST_WORDS)(use)],
};

/** A script of the project, or a program in its packages. */
export const SCRIPT: Model = { ...always("project"), tells: "" };
