import { type Settings, SETTING_KEYS } from "../../config/schema.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { type Parked, PARKED_FORM, parkedIn } from "../../core/parked.ts";
import type { Session } from "../../core/session.ts";

/** What waits in a session, as this version can go on with it; anything else ends with 2. */
export function waitingRun(session: Session): Parked {
  const parked = parkedIn(session.records());
  if (parked === undefined) throw nothingWaits(session.id);
  const { form, given } = parked;
  const keys = Object.keys(form === PARKED_FORM ? given.settings : {});
  if (keys.toSorted().join() === SETTING_KEYS.toSorted().join()) return parked;
  throw new HarnessError(
    EXIT.usage,
    `${session.id} was parked by another version of harness, which alone can go on from there`,
    `use that one, or go on without an answer: harness run --resume ${session.id} "…"`,
  );
}

export const nothingWaits = (id: string): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `nothing waits for a word in ${id}: it is answered, or was never asked`,
    `harness sessions show ${id}`,
  );

/** All of them are there, as they were when the run began. */
export const settingsOf = ({ given }: Parked): Settings =>
  Object.fromEntries(
    Object.entries(given.settings).map(([key, { value }]) => [key, value]),
  ) as unknown as Settings;

export const originsOf = ({ given }: Parked): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(given.settings).map(([key, { origin }]) => [key, origin]));
