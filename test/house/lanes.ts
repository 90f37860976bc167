/** Files of one kind, in the order in which they are to run. */
export interface Lane {
  readonly files: readonly string[];
  readonly run: (file: string) => Promise<void>;
  /** So many of them at once while other lanes want their share. */
  readonly share: number;
  /** So many at once where other lanes leave room. */
  readonly most: number;
  /** It begins when all of this lane has ended. */
  readonly after?: Lane;
}

/** Runs all of these lanes, at most `most` files at once: what one lane does not want the others get, by their order. */
export async function runLanes(lanes: readonly Lane[], most: number): Promise<void> {
  const left = new Map(lanes.map((lane) => [lane, [...lane.files]]));
  const running = new Map(lanes.map((lane) => [lane, 0]));
  const now = (lane: Lane): number => running.get(lane) ?? 0;
  const ended = (lane: Lane): boolean => left.get(lane)?.length === 0 && now(lane) === 0;
  const next = (): Lane | undefined => {
    const ready = lanes.filter(
      (lane) => left.get(lane)?.length !== 0 && (lane.after === undefined || ended(lane.after)),
    );
    return ready.find((lane) => now(lane) < lane.share) ?? ready.find((lane) => now(lane) < lane.most);
  };
  const begun = new Set<Promise<void>>();
  const start = (lane: Lane): void => {
    running.set(lane, now(lane) + 1);
    const file = left.get(lane)?.shift() ?? "";
    const one = lane.run(file).finally(() => {
      running.set(lane, now(lane) - 1);
      begun.delete(one);
    });
    begun.add(one);
  };
  for (;;) {
    for (let lane = next(); lane !== undefined && begun.size < most; lane = next()) start(lane);
    if (begun.size === 0) return;
    await Promise.race(begun);
  }
}
