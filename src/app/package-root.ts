import { existsSync } from "node:fs";
import path from "node:path";

/** The installed package: the nearest folder above this file that holds Dockerfile.sandbox. */
export const packageRoot = nearest(import.meta.dirname);

function nearest(folder: string): string {
  const parent = path.dirname(folder);
  return existsSync(path.join(folder, "Dockerfile.sandbox")) || parent === folder ? folder : nearest(parent);
}
