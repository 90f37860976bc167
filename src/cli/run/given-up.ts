import { existsSync } from "node:fs";
import path from "node:path";
import { placesFrom } from "../../config/places.ts";
import type { Session } from "../../core/session.ts";

/** Somebody goes on without a word on what waits: the box that waits for it goes, and what a killed parking left. */
export async function giveUpFrozen({ id }: Session): Promise<void> {
  if (!existsSync(path.join(placesFrom(process.env).state, "parked"))) return;
  const { dropFrozen } = await import("../frozen.ts");
  await dropFrozen(id);
}
