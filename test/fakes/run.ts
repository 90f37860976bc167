import path from "node:path";
import type { ExecRequest, ExecResult, Job } from "../../src/core/ports.ts";
import type { FakeCommand, FakeEnd } from "./commands.ts";
import { FakeKeeper } from "./keeper.ts";
import type { FakeTree } from "./tree.ts";

interface Run {
  readonly request: ExecRequest;
  readonly tree: FakeTree;
  readonly known: Readonly<Record<string, FakeCommand>>;
  readonly workspace: string;
  readonly lost: AbortSignal;
}

type Why = "cancelled" | "timeout" | "input";

/** Rejects only if the box is lost. */
export function runFake({ request, tree, known, workspace, lost }: Run): Job {
  const keeper = new FakeKeeper(request);
  const stop = new AbortController();
  const over = Promise.withResolvers<Why>();
  const end = (why: Why) => (): void => over.resolve(why);
  const timer = request.timeoutMs > 0 ? setTimeout(end("timeout"), request.timeoutMs) : undefined;
  const dead = new Promise<never>((_, reject) => {
    const fail = (): void => reject(lost.reason as Error);
    if (lost.aborted) fail();
    else lost.addEventListener("abort", fail, { once: true });
  });
  const folder = path.resolve(workspace, request.folder ?? ".");
  const [name = ""] = request.words;
  const program = async (): Promise<FakeEnd> => {
    const { words, env = {} } = request;
    const input = watched(request.input ?? noInput(), end("input"));
    const { out, err } = keeper;
    return (
      unsendable(request) ??
      unstartable({ name, folder, tree, known }) ??
      (await known[name]?.({ words, folder, env, input, files: tree, signal: stop.signal, out, err })) ??
      0
    );
  };
  const result = Promise.race([
    dead,
    over.promise.then((why) => ({ why, end: 0 })),
    lost.aborted ? dead : program().then((end) => ({ why: null, end })),
  ])
    .finally(() => (clearTimeout(timer), stop.abort()))
    .then((how): ExecResult => {
      const blocked = blockedIn(keeper.errors, folder, tree);
      const quarantined = tree.takePlanted().map((from) => ({ from, to: null, takeBack: "" }));
      const base = { ...ended(how), ...keeper.kept(), quarantined, blocked, ...keptBy(request, how, tree) };
      return blocked.length > 0 && base.cause === "program" ? { ...base, cause: "filesystem" } : base;
    });
  return { result, output: () => keeper.soFar(), kill: end("cancelled"), resize: () => undefined };
}

async function* watched(input: AsyncIterable<Uint8Array>, onFailure: () => void): AsyncGenerator<Uint8Array> {
  try {
    yield* input;
  } catch {
    onFailure();
    await new Promise(() => undefined);
  }
}

async function* noInput(): AsyncGenerator<Uint8Array> {}

/** Checks the limits for the words of a program: length, and no NUL. */
function unsendable({ words, env = {} }: ExecRequest): FakeEnd | undefined {
  const texts = [...words, ...Object.entries(env).flat()];
  const long = texts.some((text) => text.length >= 128 * 1024) || texts.join("").length > 2 ** 20;
  return long || texts.some((text) => text.includes("\0")) ? unstarted(126) : undefined;
}

const unstarted = (code: number, why: "folder" | "program" = "program"): FakeEnd => ({
  code,
  unstarted: why,
});

type ProgramStart = Pick<Run, "tree" | "known"> & { readonly name: string; readonly folder: string };

function unstartable({ name, folder, tree, known }: ProgramStart): FakeEnd | undefined {
  if (!tree.isFolder(folder)) return unstarted(126, "folder");
  if (name === "") return unstarted(126);
  if (name.includes("/")) return unstarted(tree.stat(path.resolve(folder, name)).kind === "ok" ? 126 : 127);
  return Object.hasOwn(known, name) ? undefined : unstarted(127);
}

/** The kept file of a command that was started and not killed. */
function keptBy(
  { keepFile }: ExecRequest,
  { why, end }: Parameters<typeof ended>[0],
  tree: FakeTree,
): Pick<ExecResult, "keptFile"> {
  const own = typeof end === "number" ? {} : end;
  if (keepFile === undefined || why !== null || own.signal !== undefined || own.unstarted !== undefined)
    return {};
  const { path: file, limit } = keepFile;
  const read = tree.read(file);
  if (read.kind !== "ok") return { keptFile: read };
  const { content } = read.value;
  if (content.length <= limit) return { keptFile: { kind: "ok", value: content } };
  const reason = `${file}: read: EFBIG`;
  return { keptFile: { kind: "failed", cause: "filesystem", code: "EFBIG", path: file, reason } };
}

const blockedIn = (text: string, folder: string, tree: FakeTree): readonly string[] =>
  [...text.matchAll(/'([^']*)': Read-only file system/g)]
    .map(([, name = ""]) => path.resolve(folder, name))
    .filter((file) => tree.isProtected(file));

type Verdict = Pick<ExecResult, "exit_code" | "cause" | "reason">;
type Bare = Omit<ExecResult, "stdout" | "stderr" | "duration_ms">;

const BY_FORCE = {
  timeout: { exit_code: 124, cause: "timeout", reason: "the time was over" },
  cancelled: { exit_code: 137, cause: "user", reason: "cancelled" },
  input: { exit_code: 137, cause: "user", reason: "its input failed" },
} as const;

function byItself({ code = 0, signal }: { readonly code?: number; readonly signal?: number }): Verdict {
  const exit_code = signal === undefined ? code : 128 + signal;
  if (exit_code === 0) return { exit_code, cause: null, reason: "" };
  return { exit_code, cause: "program", reason: `exit code ${exit_code}` };
}

export function ended({ why, end }: { readonly why: Why | null; readonly end: FakeEnd }): Bare {
  const own: Exclude<FakeEnd, number> = typeof end === "number" ? { code: end } : end;
  return {
    ...(why === null ? byItself(own) : BY_FORCE[why]),
    timed_out: why === "timeout",
    killed: why !== null || own.signal === 9,
    leftovers: own.leftovers ?? 0,
    blocked: [],
    quarantined: [],
    peak: { memory_bytes: 1, pids: 1 },
    ...(own.unstarted === "folder" ? { folder_gone: true } : {}),
  };
}
