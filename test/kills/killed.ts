import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

/** When a program is killed: before the nth change that it makes, or some time after it has begun to speak. */
export type Moment =
  | { readonly kind: "step"; readonly at: number; readonly half: boolean }
  | { readonly kind: "time"; readonly ms: number }
  | { readonly kind: "never" };

export interface Killed {
  /** All whole lines that it said; a line that was cut short does not count. */
  readonly lines: readonly string[];
  /** It came to its end before. */
  readonly ended: boolean;
}

const STEPS = path.join(import.meta.dirname, "steps.ts");

/** By what a program that somebody else starts kills itself. */
export function killingItself({ at, half }: Extract<Moment, { readonly kind: "step" }>): {
  readonly NODE_OPTIONS: string;
  readonly HARNESS_KILL_AT: string;
  readonly HARNESS_KILL_HALF: string;
} {
  return {
    NODE_OPTIONS: `--import ${pathToFileURL(STEPS).href}`,
    HARNESS_KILL_AT: String(at),
    HARNESS_KILL_HALF: half ? "1" : "0",
  };
}

/** Runs one of our own programs until then. `file` below the tests' folder; a failure of its own is thrown. */
export async function killed(file: string, words: readonly string[], moment: Moment): Promise<Killed> {
  const program = path.join(import.meta.dirname, "..", file);
  const env = moment.kind === "step" ? { ...process.env, ...killingItself(moment) } : process.env;
  const child = spawn(process.execPath, [program, ...words], { stdio: ["ignore", "pipe", "pipe"], env });
  const said = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk: Buffer) => (said.stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (said.stderr += chunk.toString()));
  const closed = once(child, "close") as Promise<[number | null, string | null]>;
  if (moment.kind === "time") await killLater(child, moment.ms, closed);
  const [code, signal] = await closed;
  if (signal !== "SIGKILL" && code !== 0)
    throw new Error(`${file} ended with ${code ?? signal}: ${said.stderr}`);
  return { lines: said.stdout.split("\n").slice(0, -1), ended: signal === null };
}

async function killLater(child: ChildProcess, ms: number, closed: Promise<unknown>): Promise<void> {
  if (child.stdout !== null) await Promise.race([once(child.stdout, "data"), closed]);
  await Promise.race([sleep(ms), closed]);
  child.kill("SIGKILL");
}

/** Numbers that a seed gives: the same again each time. */
export class Dice {
  #state: number;

  constructor(seed: number, nth = 0) {
    this.#state = (Math.imul(seed, 0x9e37_79b1) ^ Math.imul(nth + 1, 0x85eb_ca6b)) >>> 0;
  }

  /** From 0 up to, and without, `below`. */
  below(below: number): number {
    this.#state = (this.#state + 0x6d2b_79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  }

  oneOf<T>(items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0];
  }

  /** Two of three before a change, the rest by the clock. */
  moment({ steps, ms }: { readonly steps: number; readonly ms: number }): Moment {
    if (this.below(3) === 0) return { kind: "time", ms: this.below(ms * 10) / 10 };
    return { kind: "step", at: 1 + this.below(steps), half: this.below(2) === 0 };
  }
}

export interface Tally {
  /** Killed before its end. */
  cut: number;
  /** What else was seen, and how often. */
  readonly seen: Map<string, number>;
}

export const noted = ({ seen }: Tally, what: string): void => void seen.set(what, (seen.get(what) ?? 0) + 1);

/** Kills one thing so many times and looks at what is left each time; throws what is not as it must be. */
export type Life = (dice: Dice, kills: number, tally: Tally) => Promise<void>;
