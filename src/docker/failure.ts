import { EXIT, errorCode, HarnessError, reasonOf } from "../core/errors.ts";

const LOST = new Set(["ECONNREFUSED", "ECONNRESET", "ENOENT", "EPIPE"]);

/** What the engine answered while we were `doing` something, as a failure a person can act on. */
export function engineFailure(doing: string, thrown: unknown): HarnessError {
  const lost = LOST.has(errorCode(thrown) ?? "");
  const remedy = lost ? "the engine has gone away; start it again: ./start.sh" : "harness doctor";
  return new HarnessError(EXIT.sandbox, `${doing}: ${reasonOf(thrown)}`, remedy, thrown);
}

/** The engine answers 404 for a thing that is not there. */
export const isMissing = (thrown: unknown): boolean =>
  typeof thrown === "object" && thrown !== null && "statusCode" in thrown && thrown.statusCode === 404;
