import { setImmediate } from "node:timers/promises";
import type { WorkspaceOutcome } from "../../agent/agent-run.ts";
import { byContent, changesIn, handoffIn, isUntouched, NO_CHANGES } from "../../agent/ending/run-changes.ts";
import { type BoxLog, EMPTY_LOG, type Installed } from "../../core/run-record.ts";
import type { Checkpoints } from "../../core/session.ts";
import { BoxLost, CanaryTouched, HarnessError, reasonOf } from "../../core/errors.ts";
import type { EventBody, RunChanges } from "../../core/events.ts";
import type { Connection } from "../../core/network.ts";
import type { ListedPackages } from "../../docker/environments/installed-packages.ts";
import {
  addChanges,
  allChanges,
  type Box,
  type BoxRecovery,
  type Change,
  type GrantedNetwork,
  listed,
  type OwnedBox,
  type ParkedHandle,
} from "../../core/ports.ts";

/** A box that starts when it is first needed; a lost box is replaced. */
export interface LazyBox extends AsyncDisposable, RunBoxRecovery {
  readonly box: () => Promise<Box>;
  /** Starts the box without waiting, after the request that is being sent. */
  readonly warm: () => void;
  /** Aborted when no box can be had, or the box is gone for good. */
  readonly noBox: AbortSignal;
  /** Resolves when the box is there; never if nobody needs it or it cannot start. */
  readonly opened: Promise<Box>;
  /** Makes `box` wait until this look at the workspace has ended, whether or not it fails. */
  readonly holdFor: (look: Promise<unknown>) => void;
  /** Starts the box; undefined if the box takes no grants. */
  readonly network: () => Promise<GrantedNetwork | undefined>;
  /** Undefined until a call has asked for the box. */
  readonly used: () => Promise<Box> | undefined;
  /**
   * Stops the box, so that `finish` freezes it. Returns the time until which it is kept, or null if there is no such
   * box.
   */
  readonly park: () => Promise<number | null>;
  /** From now on, no commits are made for the box's commands. */
  readonly settle: () => Promise<void>;
  /** What the box did besides its commands since the last call. */
  readonly log: () => Promise<BoxLog>;
  /** The packages at the box's start, or at the last count; undefined unless the box reaches registries. */
  readonly packages: () => ListedPackages | undefined;
  /** Keeps the packages counted at the end of a request. */
  readonly keepPackages: (now: ListedPackages) => void;
  /** The box can reach registries from now on: counts the packages already there, unless no call has used the box. */
  readonly countPackages: (signal: AbortSignal) => Promise<void>;
  /**
   * Ends the box, or freezes it if it is parked and `stays`. Returns what the box did besides its commands. Disposing
   * of the LazyBox ends the box, too.
   */
  readonly finish: (stays: boolean) => Promise<BoxLog>;
}

interface StartedBox extends BoxLosses {
  box?: Promise<OwnedBox>;
  used?: true;
  ended?: true;
  parked?: ParkedHandle;
  installs?: true;
  packages?: ListedPackages | undefined;
  /** Counted at the end of a request. */
  latest?: ListedPackages;
}

/** Parks the box; a box that cannot be parked is removed as usual. */
async function parkBox(started: StartedBox, warn: (text: string) => void): Promise<number | null> {
  started.ended = true;
  const box = await started.box?.catch(() => undefined);
  try {
    const handle = (await box?.park?.()) ?? null;
    if (handle === null) return null;
    started.parked = handle;
    return handle.until;
  } catch (thrown) {
    warn(`the box could not be frozen, so a new one will continue: ${reasonOf(thrown)}`);
    return null;
  }
}

/** `end`: reports that the box is over, and why. */
type Start = (signal: AbortSignal, end: (why: HarnessError) => void) => Promise<OwnedBox>;
type OnReady = (ms: number, box: OwnedBox) => void;

interface LazyOptions {
  /** What a person can do after the box is lost. */
  readonly remedy?: string;
  readonly warn?: (text: string) => void;
  /** Reports that a replacement takes the box's place. */
  readonly tell?: (text: string) => void;
  /** The box reaches registries: its packages are counted before anything runs in it. */
  readonly installs?: boolean;
}

export function lazyBox(
  start: Start,
  onReady: OnReady,
  {
    remedy = "harness run --continue",
    warn = () => undefined,
    tell = warn,
    installs = false,
  }: LazyOptions = {},
): LazyBox {
  const noBox = new AbortController();
  const ending = new AbortController();
  const started: StartedBox = { ...noLosses(), ...(installs ? { installs } : {}) };
  const opened = Promise.withResolvers<Box>();
  const looks: Promise<unknown>[] = [];
  const ready: OnReady = (ms, box) => {
    onReady(ms, box);
    opened.resolve(box);
  };
  const box = boxOf(started, {
    start,
    onReady: ready,
    noBox: noBox,
    ending: ending.signal,
    remedy,
    warn,
    tell,
  });
  const end = async (): Promise<OwnedBox | undefined> => {
    started.ended = true;
    ending.abort(new Error("the run has ended"));
    return started.box?.catch(() => undefined);
  };
  return {
    box: async () => {
      started.used = true;
      const own = await box();
      await Promise.allSettled(looks);
      return own;
    },
    warm: () => void setTimeout(() => void box().catch(() => undefined), 1),
    noBox: noBox.signal,
    opened: opened.promise,
    holdFor: (look) => void looks.push(look),
    network: async () => {
      const { network } = await box();
      return network === undefined ? undefined : standingNetwork(started, network);
    },
    ...boxRecovery(started, { box, noBox: noBox.signal }),
    used: () => (started.used ? started.box : undefined),
    park: () => parkBox(started, warn),
    packages: () => started.packages,
    keepPackages: (now) => void (started.latest = now),
    countPackages: async (signal) => {
      started.installs = true;
      if (started.used !== true) return;
      const counted = async (): Promise<ListedPackages | undefined> => packagesOf(await box(), signal);
      started.packages = started.latest ?? (await counted().catch(() => undefined));
    },
    settle: async () => (await started.box?.catch(() => undefined))?.settle?.(),
    log: async () => {
      const ready = started.used === true ? await started.box?.catch(() => undefined) : undefined;
      return (await ready?.log?.()) ?? EMPTY_LOG;
    },
    finish: async (stays) => {
      const ended = await end();
      if (stays) await started.parked?.freeze();
      return (await ended?.close?.()) ?? EMPTY_LOG;
    },
    [Symbol.asyncDispose]: async () => {
      const ended = await end();
      await ended?.[Symbol.asyncDispose]();
    },
  };
}

interface Opening extends Required<Omit<LazyOptions, "installs">> {
  readonly start: Start;
  readonly onReady: OnReady;
  readonly noBox: AbortController;
  readonly ending: AbortSignal;
}

/** The box, started if necessary; after a loss that permits it, a replacement. */
function boxOf(started: StartedBox, opening: Opening): () => Promise<OwnedBox> {
  const { start, onReady, noBox, ending, remedy } = opening;
  const lose = (box: OwnedBox, reason: string): void => {
    if (started.ended === true || noBox.signal.aborted) return;
    if (mayFollow(started, box, reason)) started.lost = { box, reason };
    else noBox.abort(new BoxLost(reason, remedy));
  };
  const open = async (): Promise<OwnedBox> => {
    const began = performance.now();
    const box = withEarlierChanges(await start(ending, (why) => noBox.abort(why)), started);
    if (started.installs === true) started.packages ??= await packagesOf(box, ending);
    onReady(performance.now() - began, box);
    void box.gone.then((reason) => lose(box, reason));
    return box;
  };
  const begun = (opened: Promise<OwnedBox>): Promise<OwnedBox> => {
    started.box = opened;
    opened.catch((thrown: unknown) => noBox.abort(thrown));
    return opened;
  };
  return () => {
    const { lost } = started;
    if (lost === undefined) return started.box ?? begun(open());
    delete started.lost;
    return begun(afterLoss(started, lost, { ...opening, open }));
  };
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

/**
 * The changes of the box. With `last`, no more commits are made for its commands. For a lost box, only the changes that
 * were brought home are known; a box that no call has used has changed nothing.
 */
export async function boxChanges(
  { used, noBox, settle, packages, keepPackages, knownChanges }: LazyBox,
  checkpoints: Pick<Checkpoints, "unchanged">,
  signal: AbortSignal,
  last = false,
): Promise<WorkspaceOutcome> {
  const box = used();
  if (box === undefined) return { changes: NO_CHANGES, untouched: true, handoff: [] };
  const unknown = async (waits = true): Promise<WorkspaceOutcome> => ({
    changes: await knownChanges(waits),
    handoff: [],
  });
  // A run that is cancelled does not wait for an engine that is silent: nothing has run in a box that is not there yet.
  if (signal.aborted && (await isPending(box))) return await unknown(false);
  if (last) await settle();
  const fresh = signal.aborted ? new AbortController().signal : signal;
  const isLost = noBox.aborted && !(noBox.reason instanceof CanaryTouched);
  const seen = isLost
    ? await unknown()
    : await box.then((ready) => outcomeIn(ready, checkpoints, fresh)).catch(() => unknown());
  const outside = await box.then(replacedIn).catch(() => []);
  const others = seen.handoff.filter(({ path }) => !outside.some((one) => one.path === path));
  const before = packages();
  const installed =
    before === undefined || isLost
      ? undefined
      : await box
          .then((ready) => installedIn(ready, before, { signal: fresh, keepPackages }))
          .catch(() => undefined);
  return {
    ...seen,
    handoff: [...outside, ...others],
    ...(installed === undefined ? {} : { installed }),
  };
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

async function packagesOf(box: Box, signal: AbortSignal): Promise<ListedPackages | undefined> {
  const { listPackages } = await import("../../docker/environments/installed-packages.ts");
  return listPackages(box, [box.workspace], signal);
}

async function installedIn(
  box: Box,
  { packages }: ListedPackages,
  { signal, keepPackages }: Pick<LazyBox, "keepPackages"> & { readonly signal: AbortSignal },
): Promise<Installed | undefined> {
  const { installedSince } = await import("../../docker/environments/installed-packages.ts");
  const now = await packagesOf(box, signal);
  if (now === undefined) return undefined;
  keepPackages(now);
  return installedSince(packages, now);
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

interface Loss {
  readonly box: OwnedBox;
  readonly reason: string;
}

/**
 * Boxes that are lost during a run, and their replacements, which start with the changes that were already brought
 * home.
 */
interface BoxLosses {
  /** Set until a replacement is opened. */
  lost?: Loss;
  /** Granted during the run and not withdrawn, in order. */
  readonly grants: Set<StandingGrant>;
  /** Why boxes were lost, in order. */
  readonly reasons: string[];
  /** The changes of lost boxes, as far as they were brought home. */
  readonly changed: Map<string, Change>;
  /** How many of the losses the model was told of. */
  reported: number;
}

/** A grant that holds for the current box and its replacements. */
interface StandingGrant {
  readonly args: Parameters<GrantedNetwork["grant"]>;
  /** Withdraws it from the current box. */
  withdraw: () => void;
}

const noLosses = (): BoxLosses => ({
  grants: new Set(),
  reasons: [],
  changed: new Map(),
  reported: 0,
});

/** The most replacements in one run: further losses are caused by what the run does. */
const MAX_LOSSES = 3;

const mayFollow = ({ reasons }: BoxLosses, box: OwnedBox, reason: string): boolean =>
  reasons.length < MAX_LOSSES && box.mayFollow?.(reason) === true;

/** The network of the current box, with grants that outlast the box. */
const standingNetwork = ({ grants }: BoxLosses, network: GrantedNetwork): GrantedNetwork => ({
  connections: network.connections,
  grant: async (...args) => {
    const one: StandingGrant = { args, withdraw: await network.grant(...args) };
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
    const [more] = one.args;
    const withdraw = await (async () => {
      if (network === undefined) throw new Error("it takes no grants");
      return network.grant(...one.args);
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
function withEarlierChanges(box: OwnedBox, { changed }: BoxLosses): OwnedBox {
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
async function afterLoss(
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

interface RunBoxRecovery extends BoxRecovery {
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

function boxRecovery(
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
      losses.reported = losses.reasons.length;
      return reason;
    },
    untoldLoss: () => {
      const fresh = losses.reasons.slice(losses.reported);
      losses.reported = losses.reasons.length;
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
