import { placesFrom } from "../../config/places.ts";
import type { Session } from "../../core/session.ts";

/** Ends the boxes of runs that are dead: what one was told to do may still be writing. */
export async function endDeadBoxes({ steps }: Session): Promise<void> {
  if (steps.all().some(({ kind, after }) => kind === "call" && after === null)) await endBoxes();
}

/** The same whatever is known of any run. */
export async function endBoxes(): Promise<void> {
  const [{ lookForEngine, uid }, { isEngine }, { reap }] = await Promise.all([
    import("../wire.ts"),
    import("../../docker/engine.ts"),
    import("../../docker/life/reap.ts"),
  ]);
  const engine = await lookForEngine();
  // Without an engine nothing runs in any box.
  if (isEngine(engine)) await reap(engine, { uid: uid(), stateDir: placesFrom(process.env).state });
}
