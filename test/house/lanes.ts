/** Files of one kind, in the order in which they shall run. */
export interface Lane {
  readonly files: readonly string[];
  readonly run: (file: string) => Promise<void>;
  /** Maximum number of its files at once while other lanes want their share. */
  readonly share: number;
  /** Maximum number at once if other lanes leave room. */
  readonly most: number;
  /** The lane begins when that lane has ended. */
  readonly after?: Lane;
}

/**
 * Runs all lanes with at most `most` files at once: room that one lane does not use goes to the others, in their order.
 */
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
