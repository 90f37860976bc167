import { reasonOf } from "../../core/errors.ts";
import type { RunChanges } from "../../core/events.ts";
import {
  addChanges,
  allChanges,
  type Change,
  type GrantedNetwork,
  listed,
  type OwnedBox,
} from "../../core/ports.ts";

/** What outlasts a lost box and is there again in its replacement: changes that were brought home, and grants. */

export interface Loss {
  readonly box: OwnedBox;
  readonly reason: string;
}

/** The most replacements in one run: further losses are caused by what the run does. */
const MAX_LOSSES = 3;

/** Boxes that were lost during a run. Their replacements start with the changes that were already brought home. */
export class Losses {
  /** Why boxes were lost, in order. */
  readonly #reasons: string[] = [];
  /** How many of the losses the model was told of. */
  #told = 0;
  /** The changes of lost boxes, as far as they were brought home. */
  readonly #changed = new Map<string, Change>();

  /** Whether another box may follow this one. */
  permit({ box, reason }: Loss): boolean {
    return this.#reasons.length < MAX_LOSSES && box.mayFollow?.(reason) === true;
  }

  /** Returns what is reported of the loss. */
  add({ box, reason }: Loss): string {
    addChanges(this.#changed, box.home?.changes() ?? []);
    this.#reasons.push(reason);
    return `the box was lost (${reason}); a new one continues with the changes saved so far (${this.#reasons.length} of ${MAX_LOSSES})`;
  }

  /** The reason of the last loss, of which the model is told now. */
  lastTold(): string | undefined {
    this.#told = this.#reasons.length;
    return this.#reasons.at(-1);
  }

  /** The reason of the last loss, unless the model was told of it. */
  untold(): string | undefined {
    return this.#told < this.#reasons.length ? this.lastTold() : undefined;
  }

  /** The box, whose changes include those of the boxes before it. */
  before(box: OwnedBox): OwnedBox {
    if (this.#changed.size === 0) return box;
    const changes: OwnedBox["changes"] = async () => {
      const own = await box.changes();
      return { ...own, all: allChanges(this.#changed, own.all) };
    };
    return { ...box, changes };
  }

  /** The changes up to this box, which no longer answers, as far as known; null if nothing is known. */
  known(box: OwnedBox | undefined): RunChanges | null {
    if (box?.home === undefined && this.#changed.size === 0) return null;
    const all = allChanges(this.#changed, box?.home?.changes() ?? []);
    return { ...listed(all), ignored: 0, incomplete: true };
  }
}

/** A grant that holds for the current box and its replacements. */
interface StandingGrant {
  readonly args: Parameters<GrantedNetwork["grant"]>;
  /** Withdraws it from the current box. */
  withdraw: () => void;
}

/** What was granted during the run and not withdrawn, in order. */
export class StandingGrants {
  readonly #all = new Set<StandingGrant>();

  /** The network of the current box, with grants that outlast the box. */
  over(network: GrantedNetwork): GrantedNetwork {
    return {
      connections: network.connections,
      grant: async (...args) => {
        const one: StandingGrant = { args, withdraw: await network.grant(...args) };
        this.#all.add(one);
        return () => {
          this.#all.delete(one);
          one.withdraw();
        };
      },
    };
  }

  /** Returns the hosts. Rejects if a grant cannot be renewed, because the policy counts it as granted. */
  async renew({ network }: OwnedBox): Promise<readonly string[]> {
    const hosts: string[] = [];
    for (const one of this.#all) {
      const named = one.args[0].map(({ host }) => host);
      const withdraw = await (async () => {
        if (network === undefined) throw new Error("it takes no grants");
        return network.grant(...one.args);
      })().catch((thrown: unknown) => {
        const why = `it cannot be granted ${named.join(", ")} again: ${reasonOf(thrown)}`;
        throw new Error(why, { cause: thrown });
      });
      // The call of this grant ended meanwhile, so the grant is withdrawn.
      if (this.#all.has(one)) one.withdraw = withdraw;
      else withdraw();
      if (this.#all.has(one)) hosts.push(...named);
    }
    return [...new Set(hosts)];
  }
}
