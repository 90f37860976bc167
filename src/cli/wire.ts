import { type Engine, findEngine, isEngine, type NoEngine } from "../docker/engine.ts";
import { engineRemedy } from "../docker/host/remedy.ts";
import { readSystem } from "../docker/host/system.ts";
import { EXIT, HarnessError } from "../core/errors.ts";

/** The only file that constructs adapters. */

export const uid = (): number => process.getuid?.() ?? 0;

export const lookForEngine = (): Promise<Engine | NoEngine> => findEngine(process.env, uid());

/** The engine, or exit 6 with what brings one here. */
export async function requireEngine(): Promise<Engine> {
  const found = await lookForEngine();
  if (isEngine(found)) return found;
  throw noEngine(found, engineRemedy(await readSystem(process.env), found));
}

export function noEngine(failure: NoEngine, remedy: string): HarnessError {
  const at = failure.host === "" ? "" : ` at ${failure.host}`;
  const named = failure.origin === "usual socket" || failure.origin === "" ? "" : ` (from ${failure.origin})`;
  const why = {
    absent: "no container engine answers",
    dead: "the container engine does not answer",
    denied: "the container engine's socket may not be used by this user",
  };
  return new HarnessError(EXIT.sandbox, `${why[failure.kind]}${at}${named}: ${failure.reason}`, remedy);
}
