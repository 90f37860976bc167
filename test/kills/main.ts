/**
 * `npm run kills -- [--times N] [--seed N] [--only NAME,…] [--from N] [--load]`: kills programs of ours, by number and by
 * the clock, and has somebody who wrote nothing look at what is left. By hand, beside the tests: a thousand take minutes.
 * `--times` counts kills of each subject; `--from N --times 1` looks at one life again; `--load` keeps a core busy beside.
 */
import { spawn } from "node:child_process";
import { parseArgs } from "node:util";
import { applyLife, stateLife, undoLife } from "./checkpoint-lives.ts";
import { approvingLife, indexLife, parkingLife, runLife } from "./engine-lives.ts";
import { Dice, type Life, type Tally } from "./killed.ts";
import { searchLife } from "./search-lives.ts";
import { auditLife, removalLife, sessionLife } from "./session-lives.ts";

/** How many kills one life takes. */
const LIVES: Readonly<Record<string, readonly [life: Life, kills: number]>> = {
  search: [searchLife, 10],
  sessions: [sessionLife, 20],
  audit: [auditLife, 20],
  removals: [removalLife, 20],
  states: [stateLife, 20],
  undo: [undoLife, 5],
  apply: [applyLife, 5],
  index: [indexLife, 5],
  run: [runLife, 5],
  parking: [parkingLife, 1],
  approving: [approvingLife, 1],
};

/** With boxes: only when they are asked for by name. */
const NEEDS_ENGINE: ReadonlySet<string> = new Set(["index", "run", "parking", "approving"]);

const { values } = parseArgs({
  options: {
    times: { type: "string", default: "100" },
    seed: { type: "string", default: String(Date.now() % 100_000) },
    from: { type: "string", default: "0" },
    only: { type: "string" },
    load: { type: "boolean", default: false },
  },
});
const [times, seed, from] = [Number(values.times), Number(values.seed), Number(values.from)];
const names = values.only?.split(",") ?? Object.keys(LIVES).filter((name) => !NEEDS_ENGINE.has(name));

/** A core that has something else to do, gone with this process. */
function load(): Disposable {
  const child = spawn(process.execPath, ["-e", "for (;;) if (process.ppid === 1) process.exit()"]);
  return { [Symbol.dispose]: () => void child.kill("SIGKILL") };
}

/** After so many kills somebody who waits hears of it. */
const SHOWN = 50;

/** Whether all was well. */
async function livedThrough(name: string): Promise<boolean> {
  const [life, kills] = LIVES[name] ?? [];
  if (life === undefined || kills === undefined)
    throw new Error(`there is no ${name}, only ${Object.keys(LIVES).join(", ")}`);
  const tally: Tally = { cut: 0, seen: new Map() };
  const found: string[] = [];
  let done = 0;
  for (let nth = from; done < times; nth += 1) {
    const most = Math.min(kills, times - done);
    try {
      await life(new Dice(seed, nth), kills, tally);
    } catch (thrown) {
      const why = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
      found.push(`${name} --seed ${seed} --from ${nth}: ${why}`);
    }
    done += most;
    if (done % SHOWN < most) process.stderr.write(`${name}: ${done} kills, ${found.length} findings\n`);
  }
  const seen = [...tally.seen].map(([what, count]) => `${what} ${count}`).join(", ");
  process.stdout.write(
    `${name}: ${done} kills of seed ${seed}, ${tally.cut} before the end, ${found.length} findings (${seen})\n`,
  );
  for (const each of found) process.stdout.write(`${each}\n`);
  return found.length === 0;
}

using _ = values.load ? load() : undefined;
for (const name of names) if (!(await livedThrough(name))) process.exitCode = 1;
