import { EXIT, HarnessError } from "../../core/errors.ts";
import type { EventBody } from "../../core/events.ts";
import type { Box, OwnedBox } from "../../core/ports.ts";

/** A box that starts when it is first wanted, and is the same from then on. */
export interface LazyBox extends AsyncDisposable {
  readonly box: () => Promise<Box>;
  /** Has it begin to start, once the request that is on its way has left. */
  readonly warm: () => void;
  /** Fires when there can be none, or no more. */
  readonly walls: AbortSignal;
  /** Resolves when there is one; never, where nobody wants one or it cannot be. */
  readonly opened: Promise<Box>;
  /** Undefined as long as no call has asked for it. */
  readonly used: () => Promise<Box> | undefined;
}

export function lazyBox(
  start: (signal: AbortSignal) => Promise<OwnedBox>,
  onReady: (ms: number, box: OwnedBox) => void,
  /** What to do when it is lost. */
  remedy = "harness run --continue",
): LazyBox {
  const walls = new AbortController();
  const ending = new AbortController();
  const held: { box?: Promise<OwnedBox>; used?: true; ended?: true } = {};
  const opened = Promise.withResolvers<Box>();
  const open = async (): Promise<OwnedBox> => {
    const began = performance.now();
    try {
      const box = await start(ending.signal);
      onReady(performance.now() - began, box);
      opened.resolve(box);
      void box.gone.then((reason) => (held.ended ? undefined : walls.abort(lostBox(reason, remedy))));
      return box;
    } catch (thrown) {
      walls.abort(thrown);
      throw thrown;
    }
  };
  const box = (): Promise<OwnedBox> => (held.box ??= open());
  return {
    box: () => {
      held.used = true;
      return box();
    },
    warm: () => void setTimeout(() => void box().catch(() => undefined), 1),
    walls: walls.signal,
    opened: opened.promise,
    used: () => (held.used ? held.box : undefined),
    [Symbol.asyncDispose]: async () => {
      held.ended = true;
      ending.abort(new Error("the run has ended"));
      const opened = await held.box?.catch(() => undefined);
      await opened?.[Symbol.asyncDispose]();
    },
  };
}

const lostBox = (reason: string, remedy: string): HarnessError =>
  new HarnessError(EXIT.sandbox, `the box was lost: ${reason}`, remedy);

export const readyEvent = (ms: number, { image }: OwnedBox): EventBody => ({
  type: "box.ready",
  ms,
  ...(image === undefined ? {} : { image }),
});
