import path from "node:path";
import { type Engine, isEngine, type NoEngine } from "../../docker/engine.ts";
import { startDaemon } from "../../docker/host/daemon.ts";
import { installEngine } from "../../docker/host/install.ts";
import { engineRemedy } from "../../docker/host/remedy.ts";
import { isDebianLike, readSystem, type System } from "../../docker/host/system.ts";
import { lookForEngine, noEngine } from "../wire.ts";
import type { SetupContext } from "./context.ts";

/** An engine that answers: the one that is there, else one that is started or installed; else exit 6. */
export async function engineStep(context: SetupContext): Promise<Engine> {
  const found = await lookForEngine();
  if (isEngine(found)) return found;
  const system = await readSystem(context.env);
  if (!mayMend(found, system, context.mayInstall)) throw noEngine(found, engineRemedy(system, found));
  if (!system.dockerd) {
    context.onLine("installing docker.io from the distribution");
    await installEngine(context);
    const started = await lookForEngine();
    if (isEngine(started)) return started;
  }
  context.onLine("starting the engine");
  return startDaemon(system, { ...context, logFile: path.join(context.places.state, "dockerd.log") });
}

/** An engine that the user named is never replaced, and a socket that is guarded never worked around. */
function mayMend(found: NoEngine, system: System, mayInstall: boolean): boolean {
  if (found.origin !== "usual socket" || found.kind === "denied" || !system.root) return false;
  return mayInstall && (system.dockerd || isDebianLike(system));
}

export const describeEngine = ({ version, endpoint }: Engine): string =>
  `${version.name} ${version.version} at ${endpoint.host}${endpoint.origin === "usual socket" ? "" : ` (${endpoint.origin})`}`;
