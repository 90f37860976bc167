import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { COMPILED } from "../fixtures/cli.ts";
import { giveAway } from "../fixtures/give-away.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";
import { ROOT } from "./package.ts";

export interface Ended {
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

interface Start {
  readonly input?: string | Buffer;
  /** Standard input stays open without data. */
  readonly silent?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Words of another program that runs the command. */
  readonly under?: readonly string[];
  /** Called once this file exists. */
  readonly whenMade?: readonly [file: string, then: (kill: (signal: NodeJS.Signals) => void) => void];
  /** Closes its stdout after the first bytes. */
  readonly readsOnce?: boolean;
}

/** A home with a workspace `work` that belongs to the user of boxes. */
export async function household(
  files: Readonly<Record<string, string>> = {},
  parent?: string,
): Promise<Scratch> {
  const place = await scratch({}, parent);
  await mkdir(place.at("work"));
  for (const [name, text] of Object.entries(files)) await place.write(`work/${name}`, text);
  await giveAway(place.at("work"));
  return place;
}

/** Runs `harness sandbox exec …` as a user types it, to its end. */
export function sandboxExec(place: Scratch, words: readonly string[], start: Start = {}): Promise<Ended> {
  const env = { PATH: process.env["PATH"], HOME: place.path, ...COMPILED, ...start.env };
  const line = [...(start.under ?? []), path.join(ROOT, "bin/harness"), "sandbox", "exec", ...words];
  const child = spawn("env", line, {
    cwd: start.cwd ?? place.at("work"),
    env,
    timeout: 180_000,
  });
  const out: Buffer[] = [];
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => {
    out.push(chunk);
    if (start.readsOnce === true) child.stdout.destroy();
  });
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const [file = "", then] = start.whenMade ?? [];
  const poll = setInterval(() => {
    if (then === undefined || !existsSync(file)) return;
    clearInterval(poll);
    then((signal) => child.kill(signal));
  }, 20);
  child.stdin.on("error", () => undefined);
  if (start.silent !== true) child.stdin.end(start.input ?? "");
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      clearInterval(poll);
      child.stdin.destroy();
      resolve({ code, stdout: Buffer.concat(out), stderr });
    });
  });
}

/** The one JSON object that the command printed. */
export const answerOf = ({ stdout }: Ended): Readonly<Record<string, unknown>> =>
  JSON.parse(stdout.toString()) as Readonly<Record<string, unknown>>;

/** The output of a shell line in a box; the line must succeed. */
export async function inBox(place: Scratch, line: string): Promise<string> {
  const ended = await sandboxExec(place, ["--", "sh", "-c", line]);
  assert.equal(ended.code, 0, ended.stderr);
  return ended.stdout.toString();
}
