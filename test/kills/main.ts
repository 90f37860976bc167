/**
 * `npm run kills -- [--times N] [--seed N] [--only NAME,…] [--from N] [--load]`: kills programs of ours, by number of
 * changes and by the clock, and has another process check what is left. Run by hand, apart from the tests: a thousand
 * kills take minutes. `--times` counts kills per subject; `--from N --times 1` repeats one life; `--load` keeps one
 * core busy meanwhile.
 */
import { spawn } from "node:child_process";
import { parseArgs } from "node:util";
import { applyLife, stateLife, undoLife } from "./checkpoint-lives.ts";
import { approvingLife, indexLife, parkingLife, runLife } from "./engine-lives.ts";
import { Dice, type Life, type Tally } from "./killed.ts";
import { searchLife } from "./search-lives.ts";
import { auditLife, removalLife, sessionLife } from "./session-lives.ts";

/** The lives, with the number of kills in each. */
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

/** Lives that need boxes: run only if named. */
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
const times = Number(values.times);
const seed = Number(values.seed);
const from = Number(values.from);
const names = values.only?.split(",") ?? Object.keys(LIVES).filter((name) => !NEEDS_ENGINE.has(name));

/** Keeps one core busy until disposed. */
function load(): Disposable {
  const child = spawn(process.execPath, ["-e", "for (;;) if (process.ppid === 1) process.exit()"]);
  return { [Symbol.dispose]: () => void child.kill("SIGKILL") };
}

/** Progress is printed after this many kills. */
const SHOWN = 50;

/** Returns whether everything was as it must be. */
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
