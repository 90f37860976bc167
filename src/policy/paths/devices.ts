import { type ProcessFile, processFile } from "./normal-path.ts";

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
