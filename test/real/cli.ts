import { type Ended, runProgram } from "../fixtures/cli.ts";
import { realServer } from "./real-ollama.ts";

/** Runs `harness` as a user types it, for as long as a real model takes; stderr is shown as it arrives. */
export const harness = (words: readonly string[], home: string): Promise<Ended> =>
  runProgram("bin/harness", words, {
    home,
    env: { OLLAMA_HOST: realServer().url },
    timeout: 0,
    onStart: (child) => child.stderr?.on("data", (chunk: Buffer) => process.stderr.write(chunk)),
  });

export const jsonLines = ({ stdout }: Ended): readonly unknown[] =>
  stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as unknown);

/** A number from the environment, to spend less time or more. */
export const numberFrom = (variable: string, otherwise: number): number =>
  Number(process.env[variable] ?? otherwise);
