import { EXIT, HarnessError } from "../core/errors.ts";

/** `sandbox exec` and `shell` end with their command's code, so that want of a box has one of its own. */
export function asNoBox(thrown: unknown, json: boolean): never {
  if (!json && thrown instanceof HarnessError && thrown.exit === EXIT.sandbox)
    throw new HarnessError(EXIT.noBox, thrown.message, thrown.remedy, thrown);
  throw thrown;
}
