import { setImmediate } from "node:timers/promises";
import type { WorkspaceOutcome } from "../../agent/agent-run.ts";
import { byContent, changesIn, handoffIn, isUntouched, NO_CHANGES } from "../../agent/ending/run-changes.ts";
import { type BoxLog, EMPTY_LOG, type Installed } from "../../core/run-record.ts";
import type { Checkpoints } from "../../core/session.ts";
import { BoxLost, CanaryTouched, HarnessError, reasonOf } from "../../core/errors.ts";
import type { EventBody } from "../../core/events.ts";
import type { Connection } from "../../core/network.ts";
import type { ListedPackages } from "../../docker/environments/installed-packages.ts";
import type { Box, BoxRecovery, GrantedNetwork, OwnedBox, ParkedHandle } from "../../core/ports.ts";
import { type Loss, Losses, StandingGrants } from "./box-losses.ts";

/** `end`: reports that the box is over, and why. */
type Start = (signal: AbortSignal, end: (why: HarnessError) => void) => Promise<OwnedBox>;
type OnReady = (ms: number, box: OwnedBox) => void;

export interface LazyOptions {
  /** What a person can do after the box is lost. */
  readonly remedy?: string;
  readonly warn?: (text: string) => void;
  /** Reports that a replacement takes the box's place. */
  readonly tell?: (text: string) => void;
  /** The box reaches registries: its packages are counted before anything runs in it. */
  readonly installs?: boolean;
}

/**
 * `opened`: a start has begun; the box may be starting, be there, or have failed to start. `lost`: the next one who
 * needs the box opens a replacement, which is `opened` again.
 */
type State =
  | { readonly is: "unopened"; readonly box?: never }
  | { readonly is: "opened"; readonly box: Promise<OwnedBox> }
  | { readonly is: "lost"; readonly box: Promise<OwnedBox>; readonly loss: Loss };

/** The box of a run. It starts when it is first needed; a lost box is replaced. */
export class LazyBox implements BoxRecovery, AsyncDisposable {
  readonly #start: Start;
  readonly #onReady: OnReady;
  readonly #options: Required<Omit<LazyOptions, "installs">>;
  #state: State = { is: "unopened" };
  /** A call has asked for the box. */
  #used = false;
  /** The run has ended or is parked: from now on, no loss matters. */
  #over = false;
  #parked: ParkedHandle | undefined;
  readonly #looks: Promise<unknown>[] = [];
  readonly #noBox = new AbortController();
  readonly #ending = new AbortController();
  readonly #opened = Promise.withResolvers<Box>();
  readonly #losses = new Losses();
  readonly #grants = new StandingGrants();
  readonly #packages: PackageCount;

  constructor(start: Start, onReady: OnReady, options: LazyOptions = {}) {
    const { remedy = "harness run --continue", warn = () => undefined, tell = warn, installs } = options;
    this.#start = start;
    this.#onReady = onReady;
    this.#options = { remedy, warn, tell };
    this.#packages = new PackageCount(installs === true);
  }

  /** Aborted when no box can be had, or the box is gone for good. */
  get noBox(): AbortSignal {
    return this.#noBox.signal;
  }

  /** Resolves when the box is there; never if nobody needs it or it cannot start. */
  get opened(): Promise<Box> {
    return this.#opened.promise;
  }

  /** Whether a call has asked for the box. */
  get isUsed(): boolean {
    return this.#used;
  }

  /** The box for a call. */
  async box(): Promise<Box> {
    this.#used = true;
    const box = await this.#current();
    await Promise.allSettled(this.#looks);
    return box;
  }

  /** Makes `box` wait until this look at the workspace has ended, whether or not it fails. */
  holdFor(look: Promise<unknown>): void {
    this.#looks.push(look);
  }

  /** Starts the box without waiting, after the request that is being sent. */
  warm(): void {
    setTimeout(() => void this.#current().catch(() => undefined), 1);
  }

  /** Starts the box; undefined if the box takes no grants. */
  async network(): Promise<GrantedNetwork | undefined> {
    const { network } = await this.#current();
    return network === undefined ? undefined : this.#grants.over(network);
  }

  /** The box, started if necessary; after a loss, a replacement. */
  #current(): Promise<OwnedBox> {
    const state = this.#state;
    if (state.is === "opened") return state.box;
    const box = state.is === "lost" ? this.#replacement(state.loss) : this.#open();
    this.#state = { is: "opened", box };
    box.catch((thrown: unknown) => this.#noBox.abort(thrown));
    return box;
  }

  async #open(): Promise<OwnedBox> {
    const began = performance.now();
    const started = await this.#start(this.#ending.signal, (why) => this.#noBox.abort(why));
    const box = this.#losses.before(started);
    await this.#packages.atStart(box, this.#ending.signal);
    this.#onReady(performance.now() - began, box);
    this.#opened.resolve(box);
    void box.gone.then((reason) => this.#lose({ box, reason }));
    return box;
  }

  #lose(loss: Loss): void {
    const { box } = this.#state;
    if (this.#over || this.noBox.aborted || box === undefined) return;
    if (this.#losses.permit(loss)) this.#state = { is: "lost", box, loss };
    else this.#noBox.abort(new BoxLost(loss.reason, this.#options.remedy));
  }

  /** Removes the lost box first, because it holds what the next one begins with. */
  async #replacement(loss: Loss): Promise<OwnedBox> {
    const { tell } = this.#options;
    tell(this.#losses.add(loss));
    await this.#remove(loss.box);
    try {
      const next = await this.#open();
      try {
        const hosts = await this.#grants.renew(next);
        if (hosts.length > 0) tell(`it is granted the same hosts: ${hosts.join(", ")}`);
      } catch (thrown) {
        await this.#remove(next);
        throw thrown;
      }
      return next;
    } catch (thrown) {
      const remedy = thrown instanceof HarnessError ? thrown.remedy : "";
      const why = `${loss.reason}; no new one could be started: ${reasonOf(thrown)}`;
      throw new BoxLost(why, remedy, thrown);
    }
  }

  async #remove(box: OwnedBox): Promise<void> {
    try {
      await box[Symbol.asyncDispose]();
    } catch (thrown) {
      this.#options.warn(reasonOf(thrown));
    }
  }

  /** The box that has been opened, once its start has ended; undefined if there is none. */
  async #there(): Promise<OwnedBox | undefined> {
    return this.#state.box?.catch(() => undefined);
  }

  async bringHome(): Promise<void> {
    await (await this.#there())?.home?.bring();
  }

  async replacedAfter(thrown: unknown): Promise<string | undefined> {
    if (!(thrown instanceof BoxLost)) return undefined;
    // Lets other code that waits for the loss of the box learn of it first.
    await setImmediate();
    if (this.#state.is === "lost") await this.#current();
    return this.noBox.aborted ? undefined : this.#losses.lastTold();
  }

  untoldLoss(): string | undefined {
    return this.#losses.untold();
  }

  /** The box can reach registries from now on: counts the packages already there, unless no call has used the box. */
  async countPackages(signal: AbortSignal): Promise<void> {
    await this.#packages.begin(this.#used ? () => this.#current() : undefined, signal);
  }

  /**
   * The changes of the box. With `last`, no more commits are made for its commands. For a lost box, only the changes
   * that were brought home are known; a box that no call has used has changed nothing.
   */
  async changes(
    checkpoints: Pick<Checkpoints, "unchanged">,
    signal: AbortSignal,
    last = false,
  ): Promise<WorkspaceOutcome> {
    const box = this.#used ? this.#state.box : undefined;
    if (box === undefined) return { changes: NO_CHANGES, untouched: true, handoff: [] };
    // A run that is cancelled does not wait for an engine that is silent: nothing has run in a box that is not there yet.
    if (signal.aborted && (await isPending(box)))
      return { changes: this.#losses.known(undefined), handoff: [] };
    if (last) await (await this.#there())?.settle?.();
    const fresh = signal.aborted ? new AbortController().signal : signal;
    const isLost = this.noBox.aborted && !(this.noBox.reason instanceof CanaryTouched);
    const unknown = async (): Promise<WorkspaceOutcome> => ({
      changes: this.#losses.known(await this.#there()),
      handoff: [],
    });
    const seen = isLost
      ? await unknown()
      : await box.then((ready) => outcomeIn(ready, checkpoints, fresh)).catch(unknown);
    const outside = await box.then(replacedIn).catch(() => []);
    const others = seen.handoff.filter(({ path }) => !outside.some((one) => one.path === path));
    const installed = isLost
      ? undefined
      : await box.then((ready) => this.#packages.installedIn(ready, fresh)).catch(() => undefined);
    return {
      ...seen,
      handoff: [...outside, ...others],
      ...(installed === undefined ? {} : { installed }),
    };
  }

  /** What the box did besides its commands since the last call. */
  async log(): Promise<BoxLog> {
    const box = this.#used ? await this.#there() : undefined;
    return (await box?.log?.()) ?? EMPTY_LOG;
  }

  /**
   * Stops the box, so that `finish` freezes it. Returns the time until which it is kept, or null if there is no such
   * box; a box that cannot be parked is removed as usual.
   */
  async park(): Promise<number | null> {
    this.#over = true;
    const box = await this.#there();
    try {
      const handle = (await box?.park?.()) ?? null;
      if (handle === null) return null;
      this.#parked = handle;
      return handle.until;
    } catch (thrown) {
      this.#options.warn(`the box could not be frozen, so a new one will continue: ${reasonOf(thrown)}`);
      return null;
    }
  }

  /** Ends the box, or freezes it if it is parked and `stays`. Returns what the box did besides its commands. */
  async finish(stays: boolean): Promise<BoxLog> {
    const box = await this.#end();
    if (stays) await this.#parked?.freeze();
    return (await box?.close?.()) ?? EMPTY_LOG;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const box = await this.#end();
    await box?.[Symbol.asyncDispose]();
  }

  #end(): Promise<OwnedBox | undefined> {
    this.#over = true;
    this.#ending.abort(new Error("the run has ended"));
    return this.#there();
  }
}

/** The packages of a box that reaches registries: at its start, and at the end of each request. */
class PackageCount {
  #counts: boolean;
  #first: ListedPackages | undefined;
  #latest: ListedPackages | undefined;

  constructor(counts: boolean) {
    this.#counts = counts;
  }

  async atStart(box: Box, signal: AbortSignal): Promise<void> {
    if (this.#counts) this.#first ??= await packagesOf(box, signal);
  }

  /** Counts from now on: the box's packages now, or at the last count; those of an unused box at its start. */
  async begin(box: (() => Promise<Box>) | undefined, signal: AbortSignal): Promise<void> {
    this.#counts = true;
    if (box === undefined) return;
    const counted = async (): Promise<ListedPackages | undefined> => packagesOf(await box(), signal);
    this.#first = this.#latest ?? (await counted().catch(() => undefined));
  }

  async installedIn(box: Box, signal: AbortSignal): Promise<Installed | undefined> {
    const before = this.#first;
    if (before === undefined) return undefined;
    const { installedSince } = await import("../../docker/environments/installed-packages.ts");
    const now = await packagesOf(box, signal);
    if (now === undefined) return undefined;
    this.#latest = now;
    return installedSince(before.packages, now);
  }
}

async function packagesOf(box: Box, signal: AbortSignal): Promise<ListedPackages | undefined> {
  const { listPackages } = await import("../../docker/environments/installed-packages.ts");
  return listPackages(box, [box.workspace], signal);
}

async function isPending(work: Promise<unknown>): Promise<boolean> {
  let pending = true;
  const ended = (): void => {
    pending = false;
  };
  work.then(ended, ended);
  await setImmediate();
  return pending;
}

/** Paths that lost their protection may hold anything. */
async function replacedIn(box: Box): Promise<WorkspaceOutcome["handoff"]> {
  const paths = (await box.replaced?.()) ?? [];
  const reason = "replaced from outside while the box was open, which left it unprotected";
  return paths.map((path) => ({ path, tier: "dangerous", reason }));
}

async function outcomeIn(
  box: Box,
  checkpoints: Pick<Checkpoints, "unchanged">,
  signal: AbortSignal,
): Promise<WorkspaceOutcome> {
  const seen = await byContent(await box.changes(), checkpoints);
  // One after the other, because each reads all changed files.
  const changes = await changesIn(box, seen, signal);
  return { changes, untouched: isUntouched(seen), ...(await handoffIn(box, seen, signal)) };
}

/** A line of the proxy's ledger without its time, which the event has anyway. */
export const connectionEvent = (
  connection: Connection,
): Extract<EventBody, { readonly type: "connection" }> => {
  const { host, port, method, verdict, rule, reason, up, down } = connection;
  return { type: "connection", host, port, method, verdict, rule, reason, up, down };
};

export const readyEvent = (ms: number, { image }: OwnedBox): EventBody => ({
  type: "box.ready",
  ms,
  ...(image === undefined ? {} : { image }),
});
