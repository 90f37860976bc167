import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";

const LOST = new Set(["ECONNREFUSED", "ECONNRESET", "ENOENT", "EPIPE"]);

/** What the engine answered while we were `doing` something, as a failure a person can act on. */
export function engineFailure(doing: string, thrown: unknown): HarnessError {
  const lost = LOST.has(errorCode(thrown) ?? "");
  const reason = reasonOf(thrown).trimEnd();
  const [, cpus] = CPUS.exec(reason) ?? [];
  const asked = cpus === undefined ? "harness doctor" : `harness config set cpus ${Number(cpus)}`;
  const remedy = lost ? "the engine has gone away; start it again: ./start.sh" : asked;
  return new HarnessError(EXIT.sandbox, `${doing}: ${reason}`, remedy, thrown);
}

/** More processors were asked for than the engine has. */
const CPUS = /Range of CPUs is from [\d.]+ to (\d+(?:\.\d+)?)/;

/** True for an answer of the engine, as against a failure to reach it. */
export const hasStatus = (thrown: unknown): thrown is { readonly statusCode: number } =>
  typeof thrown === "object" &&
  thrown !== null &&
  "statusCode" in thrown &&
  typeof thrown.statusCode === "number";

/** The engine answers 404 for a thing that is not there. */
export const isMissing = (thrown: unknown): boolean => hasStatus(thrown) && thrown.statusCode === 404;

/** Removal of one thing twice at once: the engine refuses the second, and the first will do. */
export const isBeingRemoved = (thrown: unknown): boolean =>
  hasStatus(thrown) && thrown.statusCode === 409 && /already in progress/i.test(reasonOf(thrown));
