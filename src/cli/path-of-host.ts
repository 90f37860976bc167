import path from "node:path";

/** PATH without its empty and relative entries: those would start programs of the current folder. */
export const hostPath = (given = ""): string =>
  given
    .split(path.delimiter)
    .filter((folder) => path.isAbsolute(folder))
    .join(path.delimiter);
