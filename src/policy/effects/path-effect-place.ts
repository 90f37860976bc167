import { resolvePath } from "../paths/normal-path.ts";
import { type Arg, UNKNOWN } from "../programs/program-model.ts";
import type { Place } from "./effect.ts";

/** Longest path that any supported system accepts. */
const MAX_LENGTH = 4096;

/** Absolute path of an argument, relative to a folder. A pattern keeps its special characters. */
export function placeOf({ kind, value }: Arg, folder: Place): Place {
  if (kind === "dynamic" && (value.includes(UNKNOWN) || value === "")) return null;
  if (value.length > MAX_LENGTH) return null;
  if (value.startsWith("/")) return resolvePath("/", value);
  return folder === null ? null : resolvePath(folder, value);
}
