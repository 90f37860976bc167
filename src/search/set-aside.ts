import { existsSync, renameSync, rmSync } from "node:fs";

/**
 * Moves a damaged database, or a folder of one, out of the way; under which name it is then. What was set aside before
 * makes room for it: all of an index comes from files.
 */
export function setAside(place: string): string {
  const aside = `${place}.damaged`;
  rmSync(aside, { recursive: true, force: true });
  for (const beside of ["-wal", "-shm"]) rmSync(place + beside, { force: true });
  if (existsSync(place)) renameSync(place, aside);
  return aside;
}
