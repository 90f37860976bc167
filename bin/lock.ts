/**
 * `npm run lock`: renews package-lock.json and completes it. A mirror that serves the packages of one platform only
 * makes npm omit the optional packages of others from the lock, and `npm ci` then rejects the lock everywhere.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

interface Entry {
  readonly version?: string;
  readonly dev?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const root = path.join(import.meta.dirname, "..");
const file = path.join(root, "package-lock.json");

const SYSTEMS = ["android", "darwin", "freebsd", "linux", "openharmony", "win32"];
const PROCESSORS = ["arm", "arm64", "ia32", "loong64", "ppc64", "riscv64", "s390x", "wasm32", "x64"];

/** The platform that a package's name states. */
function platformOf(name: string): {
  readonly os?: string[];
  readonly cpu?: string[];
  readonly libc?: string[];
} {
  const words = (name.split("/").at(-1) ?? "").split("-");
  const one = (key: string, known: readonly string[]): object => {
    const word = words.find((candidate) => known.includes(candidate));
    return word === undefined ? {} : { [key]: [word] };
  };
  const libc = words.some((word) => word.startsWith("musl")) ? { libc: ["musl"] } : {};
  const glibc = words.some((word) => word === "gnu" || word === "gnueabihf") ? { libc: ["glibc"] } : {};
  return { ...one("cpu", PROCESSORS), ...libc, ...glibc, ...one("os", SYSTEMS) };
}

execFileSync("npm", ["install", "--package-lock-only", "--ignore-scripts"], { cwd: root, stdio: "inherit" });
const lock = JSON.parse(readFileSync(file, "utf8")) as { packages: Record<string, Entry> };
const added: string[] = [];
for (const entry of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`;
    const platform = platformOf(name);
    if (key in lock.packages || !/^\d+\.\d+\.\d+\S*$/.test(version) || Object.keys(platform).length === 0)
      continue;
    lock.packages[key] = {
      version,
      ...platform,
      ...(entry.dev === true ? { dev: true } : {}),
      optional: true,
    } as Entry;
    added.push(name);
  }
}
const sorted = Object.entries(lock.packages).toSorted(([a], [b]) => (a < b ? -1 : 1));
writeFileSync(file, `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`);
process.stderr.write(`${added.length} packages of other platforms completed\n`);
