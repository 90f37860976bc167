import type { Request } from "../../agent/agent-run.ts";
import { byContent, changesIn, handoffIn, isUntouched, NO_CHANGES } from "../../agent/ending/run-changes.ts";
import { type BoxLog, EMPTY_LOG } from "../../core/box-log.ts";
import type { Checkpoints } from "../../core/checkpoint-port.ts";
import { BoxLost, CanaryTouched, type HarnessError, reasonOf } from "../../core/errors.ts";
import type { EventBody } from "../../core/events.ts";
import type { Connection } from "../../core/network.ts";
import type { ListedPackages } from "../../docker/environments/installed-packages.ts";
import type { Installed } from "../../core/installed.ts";
import type { Box, GrantedNetwork, OwnedBox, ParkedHandle } from "../../core/ports.ts";
import {
  afterLoss,
  type BoxLosses,
  goingOn,
  type LastingWork,
  lastingWork,
  mayFollow,
  noLosses,
  standingNetwork,
} from "./box-losses.ts";

/** A box that starts when it is first wanted, and is the same from then on, or the one that took its place when it was lost. */
export interface LazyBox extends AsyncDisposable, LastingWork {
  readonly box: () => Promise<Box>;
  /** Has it begin to start, once the request that is on its way has left. */
  readonly warm: () => void;
  /** Fires when there can be none, or no more. */
  readonly walls: AbortSignal;
  /** Resolves when there is one; never, where nobody wants one or it cannot be. */
  readonly opened: Promise<Box>;
  /** Whoever asks for the box gets it when this look at what is there at the start has come to its end, whichever. */
  readonly holdFor: (look: Promise<unknown>) => void;
  /** Of the box, which is started for it; undefined where it can be granted nothing. */
  readonly network: () => Promise<GrantedNetwork | undefined>;
  /** Undefined as long as no call has asked for it. */
  readonly used: () => Promise<Box> | undefined;
  /** Has the box stop, to be frozen at its end; until when it is kept, or null where there is none. */
  readonly park: () => Promise<number | null>;
  /** From now on nothing is committed for its commands. */
  readonly settle: () => Promise<void>;
  /** What it did beside its commands since this was last asked. */
  readonly log: () => Promise<BoxLog>;
  /** What was there when it began, or when packages were last counted, where it reaches registries. */
  readonly packages: () => ListedPackages | undefined;
  /** Of the end of a request: what was there then. */
  readonly keepPackages: (now: ListedPackages) => void;
  /** From now on it reaches registries, and what is there is no news; the box is started for it only where it is used. */
  readonly countPackages: (signal: AbortSignal) => Promise<void>;
  /** Ends it, frozen where it was parked and `stays`; what it did beside its commands. Disposing of it ends it, too. */
  readonly finish: (stays: boolean) => Promise<BoxLog>;
}

interface StartedBox extends BoxLosses {
  box?: Promise<OwnedBox>;
  used?: true;
  ended?: true;
  parked?: ParkedHandle;
  installs?: true;
  packages?: ListedPackages | undefined;
  /** As they were counted at the end of a request. */
  latest?: ListedPackages;
}

/** What cannot be parked is removed as ever. */
async function parked(started: StartedBox, warn: (text: string) => void): Promise<number | null> {
  started.ended = true;
  const box = await started.box?.catch(() => undefined);
  try {
    const handle = (await box?.park?.()) ?? null;
    if (handle === null) return null;
    started.parked = handle;
    return handle.until;
  } catch (thrown) {
    warn(`the box does not wait, a new one will go on: ${reasonOf(thrown)}`);
    return null;
  }
}

/** `end`: there is no more of it, for this reason. */
type Start = (signal: AbortSignal, end: (why: HarnessError) => void) => Promise<OwnedBox>;
type OnReady = (ms: number, box: OwnedBox) => void;

interface LazyOptions {
  /** What to do when it is lost. */
  readonly remedy?: string;
  readonly warn?: (text: string) => void;
  /** Who is told that another one takes its place. */
  readonly tell?: (text: string) => void;
  /** It reaches registries: what its packages are is looked at before anything is run in it. */
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
  const walls = new AbortController();
  const ending = new AbortController();
  const started: StartedBox = { ...noLosses(), ...(installs ? { installs } : {}) };
  const opened = Promise.withResolvers<Box>();
  const looks: Promise<unknown>[] = [];
  const ready: OnReady = (ms, box) => {
    onReady(ms, box);
    opened.resolve(box);
  };
  const box = boxOf(started, { start, onReady: ready, walls, ending: ending.signal, remedy, warn, tell });
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
    walls: walls.signal,
    opened: opened.promise,
    holdFor: (look) => void looks.push(look),
    network: async () => {
      const { network } = await box();
      return network === undefined ? undefined : standingNetwork(started, network);
    },
    ...lastingWork(started, { box, walls: walls.signal }),
    used: () => (started.used ? started.box : undefined),
    park: () => parked(started, warn),
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
  readonly walls: AbortController;
  readonly ending: AbortSignal;
}

/** Gives the box, or has it start; where it was lost and may be followed, another one. */
function boxOf(started: StartedBox, opening: Opening): () => Promise<OwnedBox> {
  const { start, onReady, walls, ending, remedy } = opening;
  const lose = (box: OwnedBox, reason: string): void => {
    if (started.ended === true || walls.signal.aborted) return;
    if (mayFollow(started, box, reason)) started.lost = { box, reason };
    else walls.abort(new BoxLost(reason, remedy));
  };
  const open = async (): Promise<OwnedBox> => {
    const began = performance.now();
    const box = goingOn(await start(ending, (why) => walls.abort(why)), started);
    if (started.installs === true) started.packages ??= await packagesOf(box, ending);
    onReady(performance.now() - began, box);
    void box.gone.then((reason) => lose(box, reason));
    return box;
  };
  const begun = (opened: Promise<OwnedBox>): Promise<OwnedBox> => {
    started.box = opened;
    opened.catch((thrown: unknown) => walls.abort(thrown));
    return opened;
  };
  return () => {
    const { lost } = started;
    if (lost === undefined) return started.box ?? begun(open());
    delete started.lost;
    return begun(afterLoss(started, lost, { ...opening, open }));
  };
}

/** A line of the proxy's ledger; when it was is with the event. */
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

type Told = Awaited<ReturnType<Request["changes"]>>;

/** `last`: no command of it counts any more, so nothing is committed for one from here on. Of what a box that is lost had changed only what came home can be told; one that no call has used has changed nothing. */
export async function boxChanges(
  { used, walls, settle, packages, keepPackages, knownChanges }: LazyBox,
  checkpoints: Pick<Checkpoints, "unchanged">,
  signal: AbortSignal,
  last = false,
): Promise<Told> {
  const box = used();
  if (box === undefined) return { changes: NO_CHANGES, untouched: true, handoff: [] };
  if (last) await settle();
  const unknown = async (): Promise<Told> => ({ changes: await knownChanges(), handoff: [] });
  const fresh = signal.aborted ? new AbortController().signal : signal;
  const isLost = walls.aborted && !(walls.reason instanceof CanaryTouched);
  const seen = isLost
    ? await unknown()
    : await box.then((ready) => told(ready, checkpoints, fresh)).catch(unknown);
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

/** What lost its protection may hold anything. */
async function replacedIn(box: Box): Promise<Told["handoff"]> {
  const paths = (await box.replaced?.()) ?? [];
  const reason = "replaced from outside while the box was open, which left it unprotected";
  return paths.map((path) => ({ path, tier: "dangerous", reason }));
}

async function told(
  box: Box,
  checkpoints: Pick<Checkpoints, "unchanged">,
  signal: AbortSignal,
): Promise<Told> {
  const seen = await byContent(await box.changes(), checkpoints);
  // One after the other: each reads all of them.
  const changes = await changesIn(box, seen, signal);
  return { changes, untouched: isUntouched(seen), ...(await handoffIn(box, seen, signal)) };
}
