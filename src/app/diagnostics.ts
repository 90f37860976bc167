import path from "node:path";
import manifest from "../../package.json" with { type: "json" };
import type { Config } from "../config/load-config.ts";
import type { Settings } from "../config/settings-schema.ts";
import { EXIT } from "../core/errors.ts";
import { visible } from "../core/visible.ts";
import { stderr } from "../render/tty/output.ts";
import { DiagnosticsLog, entryText, isLevel, LEVELS } from "../telemetry/diagnostics-log.ts";
import { type Diagnosed, failureOf } from "../telemetry/run-diagnostics.ts";
import { type Host, hostFrom } from "./host.ts";
import { noteTo } from "./stderr-messages.ts";

export const diagnosticsFolder = ({ places }: Pick<Host, "places">): string =>
  path.join(places.state, "diagnostics");

export interface Diagnostics extends Disposable {
  readonly add: (entry: Diagnosed) => void;
}

/** The log of this process. With HARNESS_LOG, entries of that level or higher also go to stderr. */
export function openDiagnostics(host: Pick<Host, "env" | "places">): Diagnostics {
  const began = performance.timeOrigin;
  const log = new DiagnosticsLog({ folder: diagnosticsFolder(host), began, pid: process.pid });
  const wanted = host.env["HARNESS_LOG"]?.trim().toLowerCase() ?? "";
  const from = isLevel(wanted) ? LEVELS.indexOf(wanted) : LEVELS.length;
  if (wanted !== "" && !isLevel(wanted))
    noteTo(false)(`HARNESS_LOG is ignored: expected one of ${LEVELS.join(", ")}`);
  return {
    add: (entry) => {
      const stamped = { at: began + performance.now(), ...entry };
      log.add(stamped);
      if (LEVELS.indexOf(entry.level) >= from) stderr.write(`${visible(entryText(stamped))}\n`);
    },
    [Symbol.dispose]: () => log[Symbol.dispose](),
  };
}

/** The first entry of a process: its versions, and the settings that differ from the default with their origins. */
export const startOf = (settings: Settings, origins: Config["origins"]): Diagnosed => ({
  level: "info",
  what: "started",
  fields: { ...versions(), settings: settingsSet(settings, origins) },
});

export const versions = (): Readonly<Record<string, string>> => ({
  harness: manifest.version,
  node: process.version,
  system: `${process.platform} ${process.arch}`,
});

interface Set {
  readonly key: string;
  readonly value: unknown;
  readonly origin: string;
}

export const settingsSet = (settings: Settings, origins: Config["origins"]): readonly Set[] =>
  Object.entries(settings).flatMap(([key, value]) => {
    const origin = origins[key] ?? "default";
    return origin === "default" ? [] : [{ key, value, origin }];
  });

/**
 * Logs a failed command. Wrong usage or a missing model or server is not logged: the error message already says
 * everything, and the entry would take the room of runs.
 */
export function recordFailure(thrown: unknown, exit: number): void {
  if (exit === EXIT.usage || exit === EXIT.model) return;
  using diagnostics = openDiagnostics(hostFrom(process.env));
  const failed = failureOf(thrown);
  diagnostics.add({ ...failed, fields: { ...versions(), ...failed.fields, exit } });
}
