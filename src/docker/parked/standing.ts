import type { BoxRecord } from "../labels.ts";
import { holds, type Standing, standingsOf } from "./files.ts";

/**
 * What holds a box though its maker is gone: a person's word to come, or another process that goes on with it. One that
 * is not frozen waits for nobody: whoever was to freeze it or had thawed it was killed, and its lease ends it.
 */
export async function standingOf(
  { parks }: Pick<BoxRecord, "parks">,
  frozen: boolean,
): Promise<Standing | undefined> {
  if (parks === undefined) return undefined;
  const own = await standingsOf(parks.stateDir, parks.session).catch(() => []);
  const meant = own.filter(({ kind }) => kind === "taken" || (kind === "parked" && frozen));
  const held = await Promise.all(meant.map((each) => holds(each, Date.now())));
  return meant.find((_, index) => held[index]);
}
