import { existsSync } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import path from "node:path";
import { type Env, type Places, placesFrom } from "../config/places.ts";
import { EXIT, HarnessError, reasonOf } from "../core/errors.ts";

/** The user and the machine that a command works for: read once at the start of the command, and handed down. */
export interface Host {
  readonly env: Env;
  readonly places: Places;
  readonly uid: number;
  /** The file of the user's keys: next to the settings, but not part of them, because settings are shown. */
  readonly keysFile: string;
  /** The engine that --engine names; null: as the environment and the settings say. */
  readonly engine: string | null;
}

export function hostFrom(env: Env, engine: string | null = null): Host {
  const places = placesFrom(env);
  const keysFile = path.join(path.dirname(places.configFiles[0]), "keys.json");
  return { env, places, uid: process.getuid?.() ?? 0, keysFile, engine };
}

/** The installed package: the nearest folder above this file that holds Dockerfile.sandbox. */
export const packageRoot = nearest(import.meta.dirname);

function nearest(folder: string): string {
  const parent = path.dirname(folder);
  return existsSync(path.join(folder, "Dockerfile.sandbox")) || parent === folder ? folder : nearest(parent);
}

/** The folder that a run works in, as its sessions name it. `next` is the remedy if there is no such folder. */
export async function runWorkspace(folder: string, next = NEXT): Promise<string> {
  const real = await realpath(folder).catch((thrown: unknown) => {
    throw new HarnessError(EXIT.usage, `there is no folder ${folder}: ${reasonOf(thrown)}`, next, thrown);
  });
  if ((await stat(real)).isDirectory()) return real;
  throw new HarnessError(EXIT.usage, `${folder} is not a folder`, next);
}

const NEXT = 'harness run --cwd FOLDER "…"';
