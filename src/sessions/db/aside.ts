import { renameSync, statSync } from "node:fs";

/** SQLite's files beside a database: they hold what is not in it yet, so they go with it. */
const WITH_IT = ["-wal", "-shm", "-journal", ""];

/** Moves a database away, under a name that nothing has. The database itself goes last: until then nobody makes a new one. */
export function setAside(file: string, now: number): string {
  const free = freeName(`${file}.damaged-${stampOf(now)}`);
  for (const suffix of WITH_IT) if (exists(file + suffix)) renameSync(file + suffix, free + suffix);
  return free;
}

function freeName(wanted: string): string {
  for (let turn = 1; ; turn += 1) {
    const name = turn === 1 ? wanted : `${wanted}-${turn}`;
    if (WITH_IT.every((suffix) => !exists(name + suffix))) return name;
  }
}

const stampOf = (now: number): string => new Date(now).toISOString().replaceAll(/[-:]|\.\d+/g, "");

const exists = (file: string): boolean => statSync(file, { throwIfNoEntry: false }) !== undefined;
