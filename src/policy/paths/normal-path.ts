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
      if (at[0] === "proc") at = followProcLink(at, cwd);
    }
  }
  return at;
}

/** Names of a path that ends at one of the links of /proc, with that link followed. */
function followProcLink(at: string[], cwd: readonly string[]): string[] {
  const link = processFile(at);
  if (link === undefined) return at;
  if (link.file === "root") return [];
  return link.file === "cwd" && !isNumber(link.process) ? [...cwd] : at;
}

interface ProcessFile {
  /** `self`, `thread-self` or a number. */
  readonly process: string;
  /** The name in the process's folder. */
  readonly file: string;
  /** The names after it. */
  readonly below: number;
}

/** Splits the names after `/` of a file in /proc/<process>/… or /proc/<process>/task/<thread>/…. */
function processFile(names: readonly string[]): ProcessFile | undefined {
  const [proc, process, first, thread, second] = names;
  if (proc !== "proc" || process === undefined || first === undefined || !isProcess(process))
    return undefined;
  const inTask = first === "task" && thread !== undefined && isNumber(thread);
  if (!inTask) return { process, file: first, below: names.length - 3 };
  return second === undefined ? undefined : { process, file: second, below: names.length - 5 };
}

const isProcess = (name: string): boolean => name === "self" || name === "thread-self" || isNumber(name);

const isNumber = (name: string): boolean => /^[0-9]+$/.test(name);

/** Devices whose bytes are discarded, generated, or the program's own streams. */
const HARMLESS: ReadonlySet<string> = new Set([
  "/dev/null",
  "/dev/zero",
  "/dev/full",
  "/dev/random",
  "/dev/urandom",
  "/dev/tty",
  "/dev/stdin",
  "/dev/stdout",
  "/dev/stderr",
  "/dev/fd/0",
  "/dev/fd/1",
  "/dev/fd/2",
]);

export type SpecialKind = "null-device" | "device" | "proc" | "unknown";

/** Kind of a path in /dev or /proc; undefined for any other path and for the memory file system in /dev. */
export function specialKind(path: string): SpecialKind | undefined {
  if (path.startsWith("/dev")) return deviceKind(path);
  if (path === "/proc") return "proc";
  if (!path.startsWith("/proc/")) return undefined;
  const file = processFile(path.slice(1).split("/"));
  return file !== undefined && LINKS.has(file.file) ? linkKind(path, file) : "proc";
}

function deviceKind(path: string): SpecialKind | undefined {
  if (HARMLESS.has(path)) return "null-device";
  // Another open file may be anything, a folder too; so may the target of a stream's name.
  if (/^\/dev\/(?:fd\/|std(?:in|out|err)\/)/.test(path)) return "unknown";
  if (path === "/dev/shm" || path.startsWith("/dev/shm/")) return undefined;
  return path === "/dev" || path.startsWith("/dev/") ? "device" : undefined;
}

/** Files of a process that are links, or folders of links, to what only the kernel knows. */
const LINKS: ReadonlySet<string> = new Set(["cwd", "root", "exe", "fd", "map_files"]);

const linkKind = (path: string, { file, process, below }: ProcessFile): SpecialKind =>
  file === "fd" && below === 1 && process === "self" && /\/[012]$/.test(path) ? "null-device" : "unknown";

/** Files of a process that show its environment, its memory or its keys. */
const PROCESS_SECRETS: ReadonlySet<string> = new Set([
  "environ",
  "mem",
  "auxv",
  "cmdline",
  "maps",
  "smaps",
  "pagemap",
]);

export function processSecret(folded: string): string | null {
  if (folded === "/proc/kcore" || folded === "/proc/kmem") return "the memory of the machine";
  const file = folded.startsWith("/proc/") ? processFile(folded.slice(1).split("/")) : undefined;
  return file !== undefined && PROCESS_SECRETS.has(file.file) ? "environment or memory of a process" : null;
}
