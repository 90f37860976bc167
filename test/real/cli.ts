import { spawn } from "node:child_process";
import path from "node:path";
import type { Ended } from "../fixtures/cli.ts";
import { realServer } from "./real-ollama.ts";

const PROGRAM = path.join(import.meta.dirname, "../../bin/harness");

/** Runs `harness` as a user types it, for as long as a real model takes; stderr is shown as it arrives. */
export function harness(words: readonly string[], home: string): Promise<Ended> {
  const env = { PATH: process.env["PATH"], HOME: home, OLLAMA_HOST: realServer().url };
  const child = spawn(PROGRAM, words, { cwd: home, env, stdio: ["ignore", "pipe", "pipe"] });
  const texts = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk: Buffer) => (texts.stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => {
    texts.stderr += chunk.toString();
    process.stderr.write(chunk);
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, ...texts }));
  });
}

export const jsonLines = ({ stdout }: Ended): readonly unknown[] =>
  stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as unknown);

/** A number from the environment, to spend less time or more. */
export const numberFrom = (variable: string, otherwise: number): number =>
  Number(process.env[variable] ?? otherwise);
