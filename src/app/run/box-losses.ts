import { setImmediate } from "node:timers/promises";
import type { Lasting } from "../../core/lasting.ts";
import { addChanges, allChanges, type Change, listed } from "../../core/changes.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { RunChanges } from "../../core/events.ts";
import type { OwnedBox } from "../../core/ports.ts";

/** Boxes of one run that are lost in the middle of it, and those that take their place with what came home of them. */

interface Loss {
  readonly box: OwnedBox;
  readonly reason: string;
}

export interface BoxLosses {
  /** No other one was opened yet. */
  lost?: Loss;
  /** A grant in the middle of the run holds for the box that it was said of. */
  granted?: true;
  /** Why they were lost, in their order. */
  readonly reasons: string[];
  /** What they had changed, as far as it came home. */
  readonly changed: Map<string, Change>;
  /** How many of the losses the model was told of. */
  told: number;
}

export const noLosses = (): BoxLosses => ({ reasons: [], changed: new Map(), told: 0 });

/** Of a run. What is lost more often has its reason in what is run. */
const MOST = 3;

export const lostBox = (reason: string, remedy: string): HarnessError =>
  new HarnessError(EXIT.sandbox, `the box was lost: ${reason}`, remedy);

export const mayFollow = ({ granted, reasons }: BoxLosses, box: OwnedBox, reason: string): boolean =>
  granted !== true && reasons.length < MOST && box.mayFollow?.(reason) === true;

/** The box, telling what those before it had changed as its own. */
export function goingOn(box: OwnedBox, { changed }: BoxLosses): OwnedBox {
  if (changed.size === 0) return box;
  const changes: OwnedBox["changes"] = async () => {
    const own = await box.changes();
    return { ...own, all: allChanges(changed, own.all) };
  };
  return { ...box, changes };
}

interface Following {
  readonly open: () => Promise<OwnedBox>;
  readonly tell: (text: string) => void;
  readonly warn: (text: string) => void;
}

/** The lost one goes first: it holds what the next one begins with. */
export async function afterLoss(
  losses: BoxLosses,
  { box, reason }: Loss,
  { open, tell, warn }: Following,
): Promise<OwnedBox> {
  addChanges(losses.changed, box.home?.changes() ?? []);
  losses.reasons.push(reason);
  tell(
    `the box was lost (${reason}); another one goes on with what had come home (${losses.reasons.length} of ${MOST})`,
  );
  try {
    await box[Symbol.asyncDispose]();
  } catch (thrown) {
    warn(reasonOf(thrown));
  }
  try {
    return await open();
  } catch (thrown) {
    const message = `the box was lost: ${reason}; there is no other: ${reasonOf(thrown)}`;
    throw new HarnessError(
      EXIT.sandbox,
      message,
      thrown instanceof HarnessError ? thrown.remedy : "",
      thrown,
    );
  }
}

export interface LastingWork extends Lasting {
  /** Where the box cannot be asked any more: what is out of it, with what may be missing; null where nobody can tell. */
  readonly knownChanges: () => Promise<RunChanges | null>;
}

interface Lazily {
  readonly box: () => Promise<OwnedBox>;
  readonly walls: AbortSignal;
}

export function lastingWork(
  losses: BoxLosses & { box?: Promise<OwnedBox> },
  { box, walls }: Lazily,
): LastingWork {
  const current = async (): Promise<OwnedBox | undefined> => losses.box?.catch(() => undefined);
  return {
    bringHome: async () => (await current())?.home?.bring(),
    another: async (thrown) => {
      if (!(thrown instanceof HarnessError) || !thrown.message.startsWith("the box was lost: "))
        return undefined;
      // Who waits for the box to be gone has been told by then.
      await setImmediate();
      if (losses.lost !== undefined) await box();
      const reason = losses.reasons.at(-1);
      if (walls.aborted || reason === undefined) return undefined;
      losses.told = losses.reasons.length;
      return reason;
    },
    news: () => {
      const fresh = losses.reasons.slice(losses.told);
      losses.told = losses.reasons.length;
      return fresh.at(-1);
    },
    knownChanges: async () => {
      const { home } = (await current()) ?? {};
      if (home === undefined && losses.changed.size === 0) return null;
      const all = allChanges(losses.changed, home?.changes() ?? []);
      return { ...listed(all), ignored: 0, incomplete: true } as const;
    },
  };
}
