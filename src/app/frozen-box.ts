import { placesFrom } from "../config/places.ts";
import { isEngine } from "../docker/engine.ts";
import { discardParked, holds, standingsOf } from "../docker/isolation/parked-files.ts";
import { lookForEngine, uid } from "./open-box.ts";

/** Whether a box waits frozen for the session. */
export async function hasFrozen(session: string): Promise<boolean> {
  const { state } = placesFrom(process.env);
  const own = (await standingsOf(state, session)).filter(({ kind }) => kind === "parked");
  return (await Promise.all(own.map((each) => holds(each, Date.now())))).includes(true);
}

/** The box that waits frozen for the session is wanted no more. Where no engine answers, its time runs out. */
export async function dropFrozen(session: string): Promise<void> {
  const { state } = placesFrom(process.env);
  if (!(await hasFrozen(session))) return;
  const engine = await lookForEngine();
  if (isEngine(engine)) await discardParked(engine, { uid: uid(), stateDir: state, session });
}
