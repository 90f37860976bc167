import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Owner, startIn, thisProcess } from "../../../src/boxes/box-record.ts";

/** A process of test/boxes/workspace/holder.ts, killed at the end of its scope. */
export interface Holder extends AsyncDisposable {
  readonly pid: number;
  readonly ask: (request: object) => Promise<string>;
  readonly kill: () => Promise<void>;
  /** The exit code, once the process has ended by itself. */
  readonly code: () => number | null;
}

export async function startHolder(): Promise<Holder> {
  const child = spawn(process.execPath, [fileURLToPath(new URL("./holder.ts", import.meta.url))], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdin.on("error", () => undefined);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => String((await lines.next()).value);
  await next();
  const kill = (): Promise<void> => killed(child);
  return {
    pid: child.pid ?? 0,
    ask: (request) => {
      child.stdin.write(`${JSON.stringify(request)}\n`);
      return next();
    },
    kill,
    code: () => child.exitCode,
    [Symbol.asyncDispose]: kill,
  };
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

/** A living process, and the same one after its end, as owners. */
export async function sleeper(): Promise<
  AsyncDisposable & { readonly owner: Owner; readonly kill: () => Promise<void> }
> {
  const child = spawn("sleep", ["600"], { stdio: "ignore" });
  const { boot } = await thisProcess();
  const start = startIn(await readFile(`/proc/${child.pid}/stat`, "utf8")) ?? "";
  const kill = (): Promise<void> => killed(child);
  return { owner: { pid: child.pid ?? 0, start, boot }, kill, [Symbol.asyncDispose]: kill };
}

export async function deadOwner(): Promise<Owner> {
  await using process = await sleeper();
  return process.owner;
}
