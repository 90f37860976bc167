import { z } from "zod";
import { resultOf, written } from "./api.ts";
import { batches, sideBySide } from "./batches.ts";
import { orWithout } from "./collections.ts";
import { QdrantFailure } from "./failure.ts";
import { SHELVES, type Shelf } from "./names.ts";
import { DENSE } from "./points.ts";
import { numbersOf, type Seat } from "./seat.ts";

interface Vector {
  readonly id: string;
  readonly dense: number[];
}

const BYTES_OF_NUMBER = 22;
/** A chunk that goes between looking and writing makes the write fail as a whole. */
const MOST_TRIES = 4;

const owners = resultOf(
  z.array(z.object({ id: z.string(), payload: z.object({ index: z.string(), what: z.string() }) })),
);

/** All of them are looked at before the first is sent. */
export async function embedChunks(
  seat: Seat,
  vectors: ReadonlyMap<string, Float32Array>,
  signal: AbortSignal,
): Promise<void> {
  const all = Array.from(vectors, ([id, vector]) => ({ id, dense: numbersOf(vector, seat.identity) }));
  const parts = batches(all, ({ dense }) => dense.length * BYTES_OF_NUMBER + 80);
  await sideBySide(
    parts.flatMap((part) => SHELVES.map((shelf) => ({ shelf, part }))),
    ({ shelf, part }) => embedPart(seat, shelf, part, signal),
  );
}

async function embedPart(
  seat: Seat,
  shelf: Shelf,
  part: readonly Vector[],
  signal: AbortSignal,
): Promise<void> {
  for (let tried = 1; ; tried += 1) {
    const there = await ownIds(seat, shelf, part, signal);
    const points = part
      .filter(({ id }) => there.has(id))
      .map(({ id, dense }) => ({ id, vector: { [DENSE]: dense } }));
    if (points.length === 0) return;
    const body = { collection_name: seat.collections.name(shelf), wait: true, points };
    try {
      await seat.api.ask((calls, init) => calls.updateVectors(body, init), {
        what: `store ${points.length} vectors`,
        form: written,
        signal,
        write: true,
      });
      return;
    } catch (thrown) {
      const gone = thrown instanceof QdrantFailure && thrown.trouble.startsWith("no-");
      if (!gone || tried === MOST_TRIES) throw thrown;
    }
  }
}

/** Those that are chunks of this index: the server would refuse one that is gone. */
async function ownIds(
  { api, collections, identity }: Seat,
  shelf: Shelf,
  part: readonly Vector[],
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const body = {
    collection_name: collections.name(shelf),
    ids: part.map(({ id }) => id),
    with_payload: ["index", "what"],
    with_vector: false,
  };
  const found = api.ask((calls, init) => calls.getPoints(body, init), {
    what: "look for chunks",
    form: owners,
    signal,
  });
  const own = (await orWithout(found, [])).filter(
    ({ payload }) => payload.index === identity.index && payload.what === "chunk",
  );
  return new Set(own.map(({ id }) => id));
}
