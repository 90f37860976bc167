import { setImmediate } from "node:timers/promises";
import type { Lasting } from "../../core/lasting.ts";
import { addChanges, allChanges, type Change, listed } from "../../core/changes.ts";
import { BoxLost, HarnessError, reasonOf } from "../../core/errors.ts";
import type { RunChanges } from "../../core/events.ts";
import type { GrantedNetwork, OwnedBox } from "../../core/ports.ts";

/** Boxes of one run that are lost in the middle of it, and those that take their place with what came home of them. */

interface Loss {
  readonly box: OwnedBox;
  readonly reason: string;
}

export interface BoxLosses {
  /** No other one was opened yet. */
  lost?: Loss;
  /** What was granted in the middle of the run and was not taken back, in its order. */
  readonly grants: Set<StandingGrant>;
  /** Why they were lost, in their order. */
  readonly reasons: string[];
  /** What they had changed, as far as it came home. */
  readonly changed: Map<string, Change>;
  /** How many of the losses the model was told of. */
  told: number;
}

/** Holds for the box that it was said of, and for those that take its place. */
interface StandingGrant {
  readonly said: Parameters<GrantedNetwork["grant"]>;
  /** Takes it back from the box that is there. */
  withdraw: () => void;
}

export const noLosses = (): BoxLosses => ({
  grants: new Set(),
  reasons: [],
  changed: new Map(),
  told: 0,
});

/** Of a run. What is lost more often has its reason in what is run. */
const MOST = 3;

export const mayFollow = ({ reasons }: BoxLosses, box: OwnedBox, reason: string): boolean =>
  reasons.length < MOST && box.mayFollow?.(reason) === true;

/** Of the box that is there, whose grants outlast it. */
export const standingNetwork = ({ grants }: BoxLosses, network: GrantedNetwork): GrantedNetwork => ({
  connections: network.connections,
  grant: async (...said) => {
    const one: StandingGrant = { said, withdraw: await network.grant(...said) };
    grants.add(one);
    return () => {
      grants.delete(one);
      one.withdraw();
    };
  },
});

/** Rejects where one cannot be had again: the policy counts it as granted. */
async function grantedAgain({ grants }: BoxLosses, { network }: OwnedBox): Promise<readonly string[]> {
  const hosts: string[] = [];
  for (const one of grants) {
    const [more] = one.said;
    const withdraw = await (async () => {
      if (network === undefined) throw new Error("it takes no grants");
      return network.grant(...one.said);
    })().catch((thrown: unknown) => {
      const named = more.map(({ host }) => host).join(", ");
      throw new Error(`what was granted, ${named}, is not to be had for it: ${reasonOf(thrown)}`, {
        cause: thrown,
      });
    });
    // A call that ended meanwhile takes along what was granted for it.
    if (grants.has(one)) one.withdraw = withdraw;
    else withdraw();
    if (grants.has(one)) hosts.push(...more.map(({ host }) => host));
  }
  return [...new Set(hosts)];
}

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

async function removed(box: OwnedBox, warn: (text: string) => void): Promise<void> {
  try {
    await box[Symbol.asyncDispose]();
  } catch (thrown) {
    warn(reasonOf(thrown));
  }
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
  await removed(box, warn);
  try {
    const next = await open();
    try {
      const hosts = await grantedAgain(losses, next);
      if (hosts.length > 0) tell(`what was granted holds for it as well: ${hosts.join(", ")}`);
    } catch (thrown) {
      await removed(next, warn);
      throw thrown;
    }
    return next;
  } catch (thrown) {
    const remedy = thrown instanceof HarnessError ? thrown.remedy : "";
    throw new BoxLost(`${reason}; there is no other: ${reasonOf(thrown)}`, remedy, thrown);
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
      if (!(thrown instanceof BoxLost)) return undefined;
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
