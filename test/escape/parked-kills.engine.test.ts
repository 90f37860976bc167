// slow: it kills at many moments, each with a box
import { randomInt } from "node:crypto";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { many } from "../fixtures/property.ts";
import { approvingLife, parkingLife } from "../kills/engine-lives.ts";
import { Dice, type Life, type Tally } from "../kills/killed.ts";

/** Of each kind. */
const KILLS = many(8);
const LANES = 3;

/** In lanes, each kill in its own workspace; the kills are reported. */
async function killed(life: Life, tell: (text: string) => void): Promise<void> {
  const [seed, next] = [randomInt(100_000), { nth: 0 }];
  const tally: Tally = { cut: 0, seen: new Map() };
  const lane = async (): Promise<void> => {
    while (next.nth < KILLS) await life(new Dice(seed, (next.nth += 1)), 1, tally);
  };
  tell(`seed ${seed}`);
  await Promise.all(Array.from({ length: LANES }, lane));
  tell([...tally.seen].map(([what, count]) => `${what}: ${count}`).join(", "));
}

test(`${KILLS} harnesses killed while parking leave at most one box, and the question`, { skip }, (t) =>
  killed(parkingLife, (text) => t.diagnostic(text)),
);

test(`${KILLS} harnesses killed while resuming leave at most one box, in a definite state`, { skip }, (t) =>
  killed(approvingLife, (text) => t.diagnostic(text)),
);
