import { existsSync } from "node:fs";
import path from "node:path";
import { placesFrom } from "../config/places.ts";

/** The installed package: the nearest folder above this file that holds Dockerfile.sandbox. */
export const packageRoot = nearest(import.meta.dirname);

function nearest(folder: string): string {
  const parent = path.dirname(folder);
  return existsSync(path.join(folder, "Dockerfile.sandbox")) || parent === folder ? folder : nearest(parent);
}

/** Where the user's keys are: beside the settings, but never among them, as those are shown. */
export const keysFile = (): string =>
  path.join(path.dirname(placesFrom(process.env).configFiles[0]), "keys.json");
