import { below, isInside } from "./normal-path.ts";

/** What any program reads to work at all, and that holds no secret. From `/`; each row with all below it. */
const READABLE = prefixTable({
  programs: ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix/store"],
  "the name of the system": [
    "etc/os-release",
    "etc/lsb-release",
    "etc/debian_version",
    "etc/alpine-release",
    "etc/arch-release",
    "etc/centos-release",
    "etc/fedora-release",
    "etc/redhat-release",
    "etc/system-release",
    "etc/issue",
  ],
  "settings that every program reads": [
    "etc/alternatives",
    "etc/ld.so.cache",
    "etc/ld.so.conf",
    "etc/ld.so.conf.d",
    "etc/localtime",
    "etc/timezone",
    "etc/locale.conf",
    "etc/default/locale",
    "etc/magic",
    "etc/mime.types",
    "etc/nsswitch.conf",
    "etc/protocols",
    "etc/services",
    "etc/shells",
  ],
  "public certificates": [
    "etc/ssl/certs",
    "etc/ca-certificates",
    "etc/ca-certificates.conf",
    "etc/pki/tls/certs",
  ],
  "figures of the kernel": [
    "proc/cpuinfo",
    "proc/meminfo",
    "proc/version",
    "proc/uptime",
    "proc/loadavg",
    "proc/stat",
    "proc/filesystems",
  ],
});

/** Folders among those that hold what was put there by hand. */
const NOT_READABLE = ["/usr/home", "/usr/local/etc", "/usr/local/home", "/usr/src"];

export const isSystem = (path: string): boolean =>
  findPrefix(READABLE, below("/", path)) !== null && !NOT_READABLE.some((folder) => isInside(folder, path));

const TEMP = ["/tmp", "/var/tmp", "/dev/shm"];

export const isTemp = (path: string): boolean => TEMP.some((folder) => isInside(folder, path));

/** A table of paths that start at one known folder: why → rows. Rows are folded; each stands for itself and all below. */
export type Rows = Readonly<Record<string, readonly string[]>>;

/** By the first name of a row, then by the whole row. */
type PrefixTable = ReadonlyMap<string, ReadonlyMap<string, string>>;

export function prefixTable(rows: Rows): PrefixTable {
  const table = new Map<string, Map<string, string>>();
  for (const [why, paths] of Object.entries(rows))
    for (const path of paths) {
      const [first = ""] = path.split("/");
      const under = table.get(first) ?? new Map<string, string>();
      table.set(first, under.set(path, why));
    }
  return table;
}

/** No row has more names; a test holds the tables to it. */
export const MAX_DEPTH = 5;

/** The reason of the row that the path is, or lies below. Both have no leading slash. */
export function findPrefix(table: PrefixTable, path: string): string | null {
  let end = endOfName(path, 0);
  const under = table.get(path.slice(0, end));
  if (under === undefined) return null;
  for (let names = 0; names < MAX_DEPTH; names += 1) {
    const why = under.get(path.slice(0, end));
    if (why !== undefined) return why;
    if (end === path.length) return null;
    end = endOfName(path, end + 1);
  }
  return null;
}

export function endOfName(path: string, from: number): number {
  const slash = path.indexOf("/", from);
  return slash === -1 ? path.length : slash;
}
