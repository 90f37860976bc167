import { execFileSync, spawnSync } from "node:child_process";

/** Why tests with the host's own git cannot run here, or false. */
export const noGit: string | false =
  spawnSync("git", ["--version"]).status === 0 ? false : "no git on this machine (apt-get install git)";

/** Runs the real git, isolated from all configuration of this machine. */
export function git(cwd: string, ...args: readonly string[]): string {
  const set = [
    "user.name=t",
    "user.email=t@t",
    "protocol.file.allow=always",
    "init.defaultBranch=main",
    "safe.directory=*",
  ];
  return execFileSync("git", [...set.flatMap((one) => ["-c", one]), ...args], {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env["PATH"], HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1" },
  });
}

/** A repository with one commit. */
export function repository(folder: string): string {
  git("/", "init", "-q", folder);
  git(folder, "commit", "-q", "--allow-empty", "-m", "first");
  return folder;
}

export const mkfifo = (file: string): unknown => execFileSync("sh", ["-c", 'mkfifo -- "$0"', file]);
