import type { Open } from "./box-words.ts";
import { endingCases } from "./box-endings.ts";
import { execCases } from "./box-exec.ts";
import { fileCases } from "./box-files.ts";
import { outputCases } from "./box-output.ts";

/** What every Sandbox/Box keeps, whatever is behind it. */
export function boxContract(name: string, open: Open, skip: string | false = false): void {
  const suite = { open, of: (what: string) => `${name}: ${what}`, skip };
  execCases(suite);
  outputCases(suite);
  fileCases(suite);
  endingCases(suite);
}
