import { after, describe } from "node:test";
import type { Open, Opened } from "./box-words.ts";
import { commandEndingCases, endingCases } from "./box-endings.ts";
import { execCases } from "./box-exec.ts";
import { fileCases } from "./box-files.ts";
import { outputCases } from "./box-output.ts";

/**
 * The contract of every Sandbox and Box, whatever implements it. In a box that works on a copy, nothing of the folder
 * has to be protected.
 */
export function boxContract(
  name: string,
  open: Open,
  { skip = false, copies = false }: { readonly skip?: string | false; readonly copies?: boolean } = {},
): void {
  const of = (what: string): string => `${name}: ${what}`;
  describe(`${name}: commands that leave the box unchanged, in one box`, () => {
    const suite = { open: opensOnce(open), of, skip, copies };
    execCases(suite);
    outputCases(suite);
    commandEndingCases(suite);
  });
  const suite = { open, of, skip, copies };
  fileCases(suite);
  endingCases(suite);
}

/** Shares one box among the tests of a suite; the box ends with the suite. */
function opensOnce(open: Open): Open {
  const state: { opened?: Promise<Opened> } = {};
  after(async () => (await state.opened)?.[Symbol.asyncDispose]());
  return async () => {
    const { box, words, lose } = await (state.opened ??= open());
    return { box, words, lose, [Symbol.asyncDispose]: () => Promise.resolve() };
  };
}
