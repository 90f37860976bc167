import { setImmediate } from "node:timers/promises";
import {
  addChanges,
  allChanges,
  type BoxRecovery,
  type Change,
  type GrantedNetwork,
  listed,
  type OwnedBox,
} from "../../core/ports.ts";
import { BoxLost, HarnessError, reasonOf } from "../../core/errors.ts";
import type { RunChanges } from "../../core/events.ts";

/**
 * Boxes that are lost during a run, and their replacements, which start with the changes that were already brought
 * home.
 */

interface Loss {
  readonly box: OwnedBox;
  readonly reason: string;
}

export interface BoxLosses {
  /** Set until a replacement is opened. */
  lost?: Loss;
  /** Granted during the run and not withdrawn, in order. */
  readonly grants: Set<StandingGrant>;
  /** Why boxes were lost, in order. */
  readonly reasons: string[];
  /** The changes of lost boxes, as far as they were brought home. */
  readonly changed: Map<string, Change>;
  /** How many of the losses the model was told of. */
  told: number;
}

/** A grant that holds for the current box and its replacements. */
interface StandingGrant {
  readonly said: Parameters<GrantedNetwork["grant"]>;
  /** Withdraws it from the current box. */
  withdraw: () => void;
}

export const noLosses = (): BoxLosses => ({
  grants: new Set(),
  reasons: [],
  changed: new Map(),
  told: 0,
});

/** The most replacements in one run: further losses are caused by what the run does. */
const MAX_LOSSES = 3;

export const mayFollow = ({ reasons }: BoxLosses, box: OwnedBox, reason: string): boolean =>
  reasons.length < MAX_LOSSES && box.mayFollow?.(reason) === true;

/** The network of the current box, with grants that outlast the box. */
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

/** Rejects if a grant cannot be renewed, because the policy counts it as granted. */
async function renewGrants({ grants }: BoxLosses, { network }: OwnedBox): Promise<readonly string[]> {
  const hosts: string[] = [];
  for (const one of grants) {
    const [more] = one.said;
    const withdraw = await (async () => {
      if (network === undefined) throw new Error("it takes no grants");
      return network.grant(...one.said);
    })().catch((thrown: unknown) => {
      const named = more.map(({ host }) => host).join(", ");
      throw new Error(`it cannot be granted ${named} again: ${reasonOf(thrown)}`, {
        cause: thrown,
      });
    });
    // The call of this grant ended meanwhile, so the grant is withdrawn.
    if (grants.has(one)) one.withdraw = withdraw;
    else withdraw();
    if (grants.has(one)) hosts.push(...more.map(({ host }) => host));
  }
  return [...new Set(hosts)];
}

/** The box, whose changes include those of the boxes before it. */
export function withEarlierChanges(box: OwnedBox, { changed }: BoxLosses): OwnedBox {
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

async function removeLost(box: OwnedBox, warn: (text: string) => void): Promise<void> {
  try {
    await box[Symbol.asyncDispose]();
  } catch (thrown) {
    warn(reasonOf(thrown));
  }
}

/** Opens a replacement. Removes the lost box first, because it holds what the next one begins with. */
export async function afterLoss(
  losses: BoxLosses,
  { box, reason }: Loss,
  { open, tell, warn }: Following,
): Promise<OwnedBox> {
  addChanges(losses.changed, box.home?.changes() ?? []);
  losses.reasons.push(reason);
  tell(
    `the box was lost (${reason}); a new one continues with the changes saved so far (${losses.reasons.length} of ${MAX_LOSSES})`,
  );
  await removeLost(box, warn);
  try {
    const next = await open();
    try {
      const hosts = await renewGrants(losses, next);
      if (hosts.length > 0) tell(`it is granted the same hosts: ${hosts.join(", ")}`);
    } catch (thrown) {
      await removeLost(next, warn);
      throw thrown;
    }
    return next;
  } catch (thrown) {
    const remedy = thrown instanceof HarnessError ? thrown.remedy : "";
    throw new BoxLost(`${reason}; no new one could be started: ${reasonOf(thrown)}`, remedy, thrown);
  }
}

export interface RunBoxRecovery extends BoxRecovery {
  /**
   * The changes of a box that no longer answers, as far as known; null if nothing is known. Without `waits`, those of the
   * boxes before the one that is starting.
   */
  readonly knownChanges: (waits?: boolean) => Promise<RunChanges | null>;
}

interface CurrentBox {
  readonly box: () => Promise<OwnedBox>;
  readonly noBox: AbortSignal;
}

export function boxRecovery(
  losses: BoxLosses & { box?: Promise<OwnedBox> },
  { box, noBox }: CurrentBox,
): RunBoxRecovery {
  const current = async (): Promise<OwnedBox | undefined> => losses.box?.catch(() => undefined);
  return {
    bringHome: async () => (await current())?.home?.bring(),
    replacedAfter: async (thrown) => {
      if (!(thrown instanceof BoxLost)) return undefined;
      // Lets other code that waits for the loss of the box learn of it first.
      await setImmediate();
      if (losses.lost !== undefined) await box();
      const reason = losses.reasons.at(-1);
      if (noBox.aborted || reason === undefined) return undefined;
      losses.told = losses.reasons.length;
      return reason;
    },
    untoldLoss: () => {
      const fresh = losses.reasons.slice(losses.told);
      losses.told = losses.reasons.length;
      return fresh.at(-1);
    },
    knownChanges: async (waits = true) => {
      const { home } = (waits ? await current() : undefined) ?? {};
      if (home === undefined && losses.changed.size === 0) return null;
      const all = allChanges(losses.changed, home?.changes() ?? []);
      return { ...listed(all), ignored: 0, incomplete: true } as const;
    },
  };
}
