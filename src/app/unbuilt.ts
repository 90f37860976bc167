import type { Settings } from "../config/settings-schema.ts";
import { EXIT, HarnessError } from "../core/errors.ts";

/** Asked for and not there yet is refused: nothing runs behind weaker walls than it was told to. */
export function refuseUnbuilt({ allow_domains }: Settings): void {
  if (allow_domains.length > 0) throw unbuilt("granted domains");
}

const unbuilt = (what: string): HarnessError =>
  new HarnessError(EXIT.usage, `${what}: not built yet in this version`, "leave it out: CHANGELOG says when");
