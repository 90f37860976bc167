import path from "node:path";
import { placesFrom } from "../config/places.ts";

/** Where the user's keys are: beside the settings, but never among them, as those are shown. */
export const keysFile = (): string =>
  path.join(path.dirname(placesFrom(process.env).configFiles[0]), "keys.json");
