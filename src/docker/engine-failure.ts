import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";

const LOST = new Set(["ECONNREFUSED", "ECONNRESET", "ENOENT", "EPIPE"]);

/** Turns a failure of the engine while we were `doing` something into one that a person can act on. */
export function engineFailure(doing: string, thrown: unknown): HarnessError {
  const lost = LOST.has(errorCode(thrown) ?? "");
  const reason = reasonOf(thrown).trimEnd();
  const [, cpus] = CPUS.exec(reason) ?? [];
  const usualRemedy = cpus === undefined ? "harness doctor" : `harness config set cpus ${Number(cpus)}`;
  const remedy = lost ? "the engine has gone away; start it again: ./start.sh" : usualRemedy;
  return new HarnessError(EXIT.sandbox, `${doing}: ${reason}`, remedy, thrown);
}

/** The engine's answer if more processors are requested than it has. */
const CPUS = /Range of CPUs is from [\d.]+ to (\d+(?:\.\d+)?)/;

/** True for an answer of the engine, as opposed to a failure to reach it. */
export const hasStatus = (thrown: unknown): thrown is { readonly statusCode: number } =>
  typeof thrown === "object" &&
  thrown !== null &&
  "statusCode" in thrown &&
  typeof thrown.statusCode === "number";

/** The engine answers 404 for a thing that is not there. */
export const isMissing = (thrown: unknown): boolean => hasStatus(thrown) && thrown.statusCode === 404;

/** Two removals of the same thing at once: the engine refuses the second, and the first is enough. */
export const isBeingRemoved = (thrown: unknown): boolean =>
  hasStatus(thrown) && thrown.statusCode === 409 && /already in progress/i.test(reasonOf(thrown));
