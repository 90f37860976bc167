import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

/** When a program is killed: before its nth change, or some time after its first output. */
export type Moment =
  | { readonly kind: "step"; readonly at: number; readonly half: boolean }
  | { readonly kind: "time"; readonly ms: number }
  | { readonly kind: "never" };

export interface Killed {
  /** All complete lines of output; an incomplete line does not count. */
  readonly lines: readonly string[];
  /** The program ended before the kill. */
  readonly ended: boolean;
}

const STEPS = path.join(import.meta.dirname, "steps.ts");

/** Environment variables that make a program, started by something else, kill itself. */
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

/**
 * Runs one of our own programs until that moment. `file` is below the tests' folder; a failure of the program itself is
 * thrown.
 */
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

/** Pseudo-random numbers from a seed: the same each time. */
export class Dice {
  #state: number;

  constructor(seed: number, nth = 0) {
    this.#state = (Math.imul(seed, 0x9e37_79b1) ^ Math.imul(nth + 1, 0x85eb_ca6b)) >>> 0;
  }

  /** A number from 0 up to, but excluding, `below`. */
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

  /** Two thirds before a change, the rest by the clock. */
  moment({ steps, ms }: { readonly steps: number; readonly ms: number }): Moment {
    if (this.below(3) === 0) return { kind: "time", ms: this.below(ms * 10) / 10 };
    return { kind: "step", at: 1 + this.below(steps), half: this.below(2) === 0 };
  }
}

export interface Tally {
  /** Kills before the program's end. */
  cut: number;
  /** Other observations, with their counts. */
  readonly seen: Map<string, number>;
}

export const countSeen = ({ seen }: Tally, what: string): void =>
  void seen.set(what, (seen.get(what) ?? 0) + 1);

/** Kills one subject repeatedly and checks what is left each time; throws if something is wrong. */
export type Life = (dice: Dice, kills: number, tally: Tally) => Promise<void>;
