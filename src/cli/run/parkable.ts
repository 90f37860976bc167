import type { Settings } from "../../config/schema.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";

/** A parked run goes on in a new box: with a copy of the workspace, what it had changed would be gone. */
export function refuseLosing({ on_ask, isolation }: Settings): void {
  if (on_ask !== "park" || isolation === "bind") return;
  throw new HarnessError(
    EXIT.usage,
    `a run cannot be parked with --isolation ${isolation}: it goes on in a new box, without its changes`,
    "--isolation bind, or --on-ask contained",
  );
}
