import { spawn } from "node:child_process";
import { lstat, readdir, readFile } from "node:fs/promises";
import path from "node:path";
import type { Box, ListedEntry, ExecRequest, ExecResult, FileResult } from "../../src/core/ports.ts";

/**
 * Not a real box: runs programs of this machine over a test's own folder, for behaviour that only real programs show
 * (GNU find and tar). It never starts anything from a repository.
 */
export interface HostBox extends Box {
  /** The first words of started commands, in order. */
  readonly started: string[];
}

export function hostBox(workspace: string): HostBox {
  const started: string[] = [];
  return {
    workspace,
    started,
    exec: (request, signal) => {
      started.push(request.words[0] ?? "");
      return run(workspace, request, signal);
    },
    start: unused,
    write: unused,
    search: unused,
    changes: unused,
    gone: new Promise<string>(() => undefined),
    read: (file) =>
      asResult(file, async () => {
        const content = await readFile(path.resolve(workspace, file));
        return { content, size: content.length };
      }),
    list: (folder) =>
      asResult(folder, async () => {
        const names = await readdir(path.resolve(workspace, folder));
        return Promise.all(names.map((name) => entry(path.resolve(workspace, folder, name))));
      }),
    stat: (file) => asResult(file, () => entry(path.resolve(workspace, file))),
  };
}

const unused = (): never => {
  throw new Error("not needed here");
};

async function entry(file: string): Promise<ListedEntry> {
  const stats = await lstat(file);
  const { mode, size, mtimeMs } = stats;
  const kind = stats.isFile()
    ? "file"
    : stats.isDirectory()
      ? "folder"
      : stats.isSymbolicLink()
        ? "link"
        : "odd";
  return { name: path.basename(file), kind, mode, size, modified: Math.floor(mtimeMs / 1000) };
}

async function asResult<T>(file: string, work: () => Promise<T>): Promise<FileResult<T>> {
  try {
    return { kind: "ok", value: await work() };
  } catch (thrown) {
    return { kind: "failed", cause: "filesystem", code: "EIO", path: file, reason: String(thrown) };
  }
}

async function run(
  workspace: string,
  { words: [program = "", ...words], input, onOutput, env }: ExecRequest,
  signal: AbortSignal,
): Promise<ExecResult> {
  const child = spawn(program, words, { cwd: workspace, env: { PATH: process.env["PATH"], ...env } });
  const kill = (): void => void child.kill("SIGKILL");
  if (signal.aborted) kill();
  signal.addEventListener("abort", kill, { once: true });
  child.stdin.on("error", () => undefined);
  const feed = async (): Promise<void> => {
    for await (const bytes of input ?? nothing()) child.stdin.write(bytes);
    child.stdin.end();
  };
  const read = async (stream: "stdout" | "stderr"): Promise<void> => {
    for await (const bytes of child[stream]) await onOutput?.(stream, bytes as Buffer);
  };
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const [code] = await Promise.all([ended, feed(), read("stdout"), read("stderr")]);
  signal.removeEventListener("abort", kill);
  const none = { head: Buffer.alloc(0), tail: Buffer.alloc(0), total: 0, lost: 0 };
  return {
    exit_code: code ?? 137,
    cause: code === 0 ? null : "program",
    reason: code === 0 ? "" : `it ended with ${code}`,
    stdout: none,
    stderr: none,
    duration_ms: 0,
    timed_out: false,
    killed: code === null,
    leftovers: 0,
    blocked: [],
    quarantined: [],
    peak: { memory_bytes: 0, pids: 0 },
  };
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // No input.
}
