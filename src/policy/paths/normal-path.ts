/** Paths as Linux reads them, by text alone. Only links of /proc with a known target are followed. */

const SLASH = 0x2f;
const DOT = 0x2e;

/**
 * Absolute, without `.`, `..`, doubled and trailing slashes. `/proc/self/cwd` is `from`, `/proc/<any>/root` is `/`,
 * since all processes of a box share one root. The current folder of another process is unknown and stays as written.
 */
export function resolvePath(from: string, path: string): string {
  const absolute = path.startsWith("/");
  const joined = absolute ? path : `${from}/${path}`;
  if (isNormal(joined)) return joined;
  const folder = walk([], from, []);
  return `/${walk(absolute ? [] : folder, path, folder).join("/")}`;
}

/** Whether the path has no empty names, no `.` and `..`, and is not in /proc. */
function isNormal(path: string): boolean {
  if (path.charCodeAt(0) !== SLASH || path.startsWith("/proc/")) return false;
  for (let slash = 0; slash !== -1; slash = path.indexOf("/", slash + 1)) {
    let end = slash + 1;
    while (end <= slash + 2 && path.charCodeAt(end) === DOT) end += 1;
    if (end === path.length || path.charCodeAt(end) === SLASH) return false;
  }
  return true;
}

function walk(start: readonly string[], path: string, cwd: readonly string[]): readonly string[] {
  let at = [...start];
  for (const name of path.split("/")) {
    if (name === "" || name === ".") continue;
    if (name === "..") at.pop();
    else {
      at.push(name);
      if (at[0] === "proc") at = followed(at, cwd);
    }
  }
  return at;
}

/** Names of a path that ends at one of the links of /proc, with that link followed. */
function followed(at: string[], cwd: readonly string[]): string[] {
  const link = processFile(at);
  if (link === undefined) return at;
  if (link.file === "root") return [];
  return link.file === "cwd" && !isNumber(link.process) ? [...cwd] : at;
}

export interface ProcessFile {
  /** `self`, `thread-self` or a number. */
  readonly process: string;
  /** The name in the process's folder. */
  readonly file: string;
  /** The names after it. */
  readonly below: number;
}

/** Splits the names after `/` of a file in /proc/<process>/… or /proc/<process>/task/<thread>/…. */
export function processFile(names: readonly string[]): ProcessFile | undefined {
  const [proc, process, first, thread, second] = names;
  if (proc !== "proc" || process === undefined || first === undefined || !isProcess(process))
    return undefined;
  const inTask = first === "task" && thread !== undefined && isNumber(thread);
  if (!inTask) return { process, file: first, below: names.length - 3 };
  return second === undefined ? undefined : { process, file: second, below: names.length - 5 };
}

const isProcess = (name: string): boolean => name === "self" || name === "thread-self" || isNumber(name);

const isNumber = (name: string): boolean => /^[0-9]+$/.test(name);
