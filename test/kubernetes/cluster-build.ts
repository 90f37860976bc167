import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";

/** Shared by all recipes for the programs of a cluster. */

export type Run = (words: readonly string[], cwd?: string, env?: object) => Promise<void>;

export const BUILT = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"];

/** Holds the namespaces of a pod, like the usual pause image, which is not fetched from a registry here. */
const PAUSE = `package main
import ("os"; "os/signal"; "syscall")
func main() { told := make(chan os.Signal, 1); signal.Notify(told, syscall.SIGINT, syscall.SIGTERM); <-told }
`;

interface Building {
  readonly run: Run;
  readonly env: object;
}

/** `go`: the words that call the compiler. */
export async function buildPause(
  go: readonly string[],
  place: string,
  { run, env }: Building,
): Promise<void> {
  const at = (...parts: readonly string[]): string => path.join(place, ...parts);
  await mkdir(at("pause"), { recursive: true });
  await writeFile(at("pause/pause.go"), PAUSE);
  await run([...go, "build", "-ldflags", "-s -w", "-o", at("bin/pause"), at("pause/pause.go")], place, env);
}

/** Linker flags: without them a program does not consider itself a release. */
export function versionFlags(place: string, version: string): string {
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(version) ?? [];
  const told = { gitVersion: version, gitMajor: major, gitMinor: minor, buildDate: "1970-01-01T00:00:00Z" };
  const flags = Object.entries(told).map(([name, value]) => `-X ${place}.${name}=${value}`);
  return `-s -w ${flags.join(" ")}`;
}
