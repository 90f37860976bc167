import type { Request } from "../../agent/agent-run.ts";
import { byContent, changesIn, handoffIn, isUntouched, NO_CHANGES } from "../../agent/ending/run-changes.ts";
import { type BoxLog, EMPTY_LOG } from "../../core/box-log.ts";
import type { Checkpoints } from "../../core/checkpoint-port.ts";
import { CanaryTouched, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { EventBody } from "../../core/events.ts";
import type { Connection } from "../../core/network.ts";
import type { ListedPackages } from "../../docker/environments/installed-packages.ts";
import type { Installed } from "../../core/installed.ts";
import type { Box, GrantedNetwork, OwnedBox, ParkedHandle } from "../../core/ports.ts";

/** A box that starts when it is first wanted, and is the same from then on. */
export interface LazyBox extends AsyncDisposable {
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

interface StartedBox {
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

export function lazyBox(
  /** `end`: there is no more of it, for this reason. */
  start: (signal: AbortSignal, end: (why: HarnessError) => void) => Promise<OwnedBox>,
  onReady: (ms: number, box: OwnedBox) => void,
  {
    remedy = "harness run --continue",
    warn = () => undefined,
    installs = false,
  }: {
    /** What to do when it is lost. */
    readonly remedy?: string;
    readonly warn?: (text: string) => void;
    /** It reaches registries: what its packages are is looked at before anything is run in it. */
    readonly installs?: boolean;
  } = {},
): LazyBox {
  const walls = new AbortController();
  const ending = new AbortController();
  const started: StartedBox = installs ? { installs } : {};
  const opened = Promise.withResolvers<Box>();
  const looks: Promise<unknown>[] = [];
  const open = async (): Promise<OwnedBox> => {
    const began = performance.now();
    try {
      const box = await start(ending.signal, (why) => walls.abort(why));
      if (started.installs === true) started.packages = await packagesOf(box, ending.signal);
      onReady(performance.now() - began, box);
      opened.resolve(box);
      void box.gone.then((reason) => (started.ended ? undefined : walls.abort(lostBox(reason, remedy))));
      return box;
    } catch (thrown) {
      walls.abort(thrown);
      throw thrown;
    }
  };
  const box = (): Promise<OwnedBox> => (started.box ??= open());
  const end = async (): Promise<OwnedBox | undefined> => {
    started.ended = true;
    ending.abort(new Error("the run has ended"));
    return started.box?.catch(() => undefined);
  };
  return {
    box: async () => {
      started.used = true;
      const ready = await box();
      await Promise.allSettled(looks);
      return ready;
    },
    warm: () => void setTimeout(() => void box().catch(() => undefined), 1),
    walls: walls.signal,
    opened: opened.promise,
    holdFor: (look) => void looks.push(look),
    network: async () => (await box()).network,
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

const lostBox = (reason: string, remedy: string): HarnessError =>
  new HarnessError(EXIT.sandbox, `the box was lost: ${reason}`, remedy);

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

/** `last`: no command of it counts any more, so nothing is committed for one from here on. What a box that is lost had changed nobody can tell; one that no call has used has changed nothing. */
export async function boxChanges(
  { used, walls, settle, packages, keepPackages }: LazyBox,
  checkpoints: Pick<Checkpoints, "unchanged">,
  signal: AbortSignal,
  last = false,
): Promise<Told> {
  const box = used();
  if (box === undefined) return { changes: NO_CHANGES, untouched: true, handoff: [] };
  if (last) await settle();
  const unknown = { changes: null, handoff: [] };
  const fresh = signal.aborted ? new AbortController().signal : signal;
  const isLost = walls.aborted && !(walls.reason instanceof CanaryTouched);
  const seen = isLost
    ? unknown
    : await box.then((ready) => told(ready, checkpoints, fresh)).catch(() => unknown);
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
