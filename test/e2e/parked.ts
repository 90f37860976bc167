import type { Scratch } from "../fixtures/scratch.ts";
import { finishedOf, harness, type Model, type Ran, type RunStart, type Said } from "./run-command.ts";

/** Parks and approves runs as a user does. */

export const FINE: Said = { text: "Everything is done." };

/** A command that asks and is not contained. In the box it appends a line, so that each execution is visible. */
export const FAR = "curl -sS -m 5 http://example.com/x; echo ran >> ran";

export const park = (place: Scratch, model: Model, flags: readonly string[] = []): Promise<Ran> =>
  harness(place, ["run", "--json", "--on-ask", "park", ...flags, ...model.flags, "do it"]);

export const approve = (
  place: Scratch,
  session: string,
  flags: readonly string[],
  start?: RunStart,
): Promise<Ran> => harness(place, ["approve", session, ...flags], start);

/** The exit code, the reported code, and the status. */
export const endOf = (ran: Ran): readonly unknown[] => {
  const { status, exit_code } = finishedOf(ran);
  return [ran.code, exit_code, status];
};

export const sessionOf = (ran: Ran): string => finishedOf(ran).session;

export const PARKED = [7, 7, "parked"];
export const DONE = [0, 0, "done"];
