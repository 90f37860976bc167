import type { Config } from "../../config/load.ts";
import type { Settings } from "../../config/schema.ts";
import type { RunAbout } from "../../sessions/audit/trail.ts";
import manifest from "../../../package.json" with { type: "json" };

/** What the audit says of a run beside its events. The settings are those in force, whatever their origins gave. */
export function aboutRun(settings: Settings, origins: Config["origins"]): RunAbout {
  const each = Object.entries(settings).map(
    ([key, value]) => [key, { value, origin: origins[key] ?? "default" }] as const,
  );
  return {
    settings: Object.fromEntries(each),
    versions: {
      harness: manifest.version,
      node: process.version,
      system: `${process.platform} ${process.arch}`,
    },
  };
}
