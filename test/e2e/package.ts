import { spawn } from "node:child_process";
import { cp, mkdir, symlink } from "node:fs/promises";
import path from "node:path";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

export const ROOT = path.join(import.meta.dirname, "..", "..");
const PACKAGED = `node-linux-${process.arch}`;

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly pid: number | undefined;
}

interface Start {
  /** The complete environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Called once with the first text on stdout. */
  readonly onStdout?: (kill: (signal: NodeJS.Signals) => void) => void;
}

/** Runs any program to its end. */
export function launch(program: string, args: readonly string[], start: Start = {}): Promise<Ended> {
  const { env = {}, cwd, onStdout } = start;
  const child = spawn(program, args, { env, cwd, stdio: ["ignore", "pipe", "pipe"], timeout: 30_000 });
  const texts = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk: Buffer) => (texts.stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (texts.stderr += chunk.toString()));
  child.stdout.once("data", () => onStdout?.((signal) => child.kill(signal)));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal, ...texts, pid: child.pid }));
  });
}

/** The result of a program: exit code, stdout, stderr. */
export const said = ({ code, stdout, stderr }: Ended): readonly [number | null, string, string] => [
  code,
  stdout,
  stderr,
];

/** A package with the real launcher and a dist/main.cjs provided by the test. */
export async function packageWith(main: string | undefined): Promise<Scratch> {
  const place = await scratch({ "package/package.json": '{"type": "module"}' });
  await mkdir(place.at("package/bin"));
  await cp(path.join(ROOT, "bin/harness"), place.at("package/bin/harness"));
  if (main !== undefined) await place.write("package/dist/main.cjs", main);
  return place;
}

/** A program called node that reports this version, and otherwise prints its own path. */
export const fakeNode = (place: Scratch, file: string, version: string): Promise<string> =>
  place.write(
    file,
    `#!/bin/sh\n[ "$1" = --version ] && echo "${version}" && exit\nprintf '%s\\n' "this is ${file}"\n`,
    0o755,
  );

/** Where npm puts the packaged Node: inside the package's node_modules, or next to the package. */
export const packagedNode = (modules: string): string => path.join(modules, PACKAGED, "bin/node");

/** The files that `npm install --global` lays out below a prefix, from this checkout's build. */
export async function globalInstall(place: Scratch, modules: string): Promise<string> {
  const home = "prefix/lib/node_modules/harness";
  await mkdir(place.at(home, "bin"), { recursive: true });
  await cp(path.join(ROOT, "bin/harness"), place.at(home, "bin/harness"));
  for (const file of ["dist", "package.json", "oclif.manifest.json", "Dockerfile.sandbox"])
    await cp(path.join(ROOT, file), place.at(home, file), { recursive: true });
  const node = packagedNode(modules);
  await mkdir(path.dirname(place.at(node)), { recursive: true });
  await symlink(process.execPath, place.at(node));
  await mkdir(place.at("prefix/bin"));
  await symlink("../lib/node_modules/harness/bin/harness", place.at("prefix/bin/harness"));
  return place.at("prefix/bin/harness");
}
