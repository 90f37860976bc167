import path from "node:path";
import { BoxLost } from "../../src/core/errors.ts";
import type { Box, ExecRequest, ExecResult, Job, OwnedBox, Sandbox } from "../../src/core/ports.ts";
import { COMMANDS, type FakeCommand } from "./commands.ts";
import { FakeKeeper } from "./keeper.ts";
import { ended, runFake } from "./run.ts";
import { FakeTree } from "./tree.ts";

interface FakeBoxOptions {
  readonly workspace?: string;
  /** Names below the workspace. */
  readonly files?: Readonly<Record<string, string>>;
  /** Commands by their first word; they add to the built-in ones and override them. */
  readonly commands?: Readonly<Record<string, FakeCommand>>;
}

export interface FakeBox extends OwnedBox {
  readonly files: FakeTree;
  /** All requests that were started, in order. */
  readonly asked: readonly ExecRequest[];
  /** The box dies while it is in use. */
  readonly lose: (reason: string) => void;
}

/** For tests of code that starts boxes. */
export const fakeSandbox = (options: FakeBoxOptions = {}): Sandbox => ({
  start: ({ workspace }) => Promise.resolve(fakeBox({ ...options, workspace })),
});

/** A box without an engine: its commands are functions, its files are in memory. */
export function fakeBox({ workspace = "/repo", files = {}, commands = {} }: FakeBoxOptions = {}): FakeBox {
  const tree = new FakeTree(workspace, files);
  const known = { ...COMMANDS, ...commands };
  const asked: ExecRequest[] = [];
  const gone = Promise.withResolvers<string>();
  const lost = new AbortController();
  const lose = (reason: string): void => {
    gone.resolve(reason);
    lost.abort(new BoxLost(reason, "harness doctor"));
  };
  const at = (file: string): string => path.resolve(workspace, file);
  const whileHere = async <T>(work: () => T): Promise<T> => {
    lost.signal.throwIfAborted();
    return work();
  };
  const start = (request: ExecRequest): Job => {
    if (!lost.signal.aborted) asked.push(request);
    const job = runFake({ request, tree, known, workspace, lost: lost.signal });
    job.result.catch(() => undefined);
    return job;
  };
  return {
    workspace,
    files: tree,
    asked,
    lose,
    gone: gone.promise,
    start,
    exec: (request, signal) => cancellable(request, signal, { start, lost: lost.signal }),
    read: (file, range) => whileHere(() => tree.read(at(file), range)),
    write: (file, content) => whileHere(() => tree.write(at(file), content)),
    list: (folder) => whileHere(() => tree.list(at(folder))),
    stat: (file) => whileHere(() => tree.stat(at(file))),
    search: (request) => whileHere(() => tree.search(request, at(request.folder ?? "."))),
    changes: () => whileHere(() => tree.changes()),
    [Symbol.asyncDispose]: () => Promise.resolve(lose("the box has ended")),
  };
}

interface Place {
  readonly start: Box["start"];
  readonly lost: AbortSignal;
}

async function cancellable(
  request: ExecRequest,
  signal: AbortSignal,
  { start, lost }: Place,
): Promise<ExecResult> {
  lost.throwIfAborted();
  if (signal.aborted) return { ...ended({ why: "cancelled", end: 0 }), ...new FakeKeeper(request).kept() };
  const job = start(request);
  signal.addEventListener("abort", job.kill, { once: true });
  return job.result.finally(() => signal.removeEventListener("abort", job.kill));
}
