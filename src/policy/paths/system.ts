import { below, isInside } from "./normal.ts";
import { findPrefix, prefixTable } from "./match.ts";

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
