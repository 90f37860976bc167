import { copyFile, lstat, open, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import type { Settings } from "../../config/settings-schema.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { Usage } from "../../core/model-provider.ts";
import { visibleLine } from "../../core/visible.ts";
import { NO_USAGE, sumUsage } from "../../models/token-usage.ts";
import type { RowCause, RowResult } from "../../render/batch-results.ts";
import { type ChildEnd, finishedIn, type FinishedRun, lastLines, refusalIn, runChild } from "./child-run.ts";
import type { Host } from "../host.ts";
import type { Subject } from "../vet/vet-box.ts";
import { OutLost, outFolderLost } from "./batch-folder.ts";
import type { BatchRow } from "./batch-rows.ts";
import { replaceFile } from "../../platform/safe-files.ts";
import { reportPage } from "../../render/html-page.ts";
import { gitPatchOf } from "../../render/change-lines.ts";
import { diffOfSession } from "../sessions/checkpoint-access.ts";
import { bundleBytes } from "../sessions/bundle-file.ts";
import { sessionReport } from "../sessions/report-file.ts";
import { withSessions } from "../sessions/session-access.ts";
import { diffOfLayer, removeLayer } from "../sessions/session-changes.ts";

/** What all rows of a batch have in common. */
export interface RowPlan {
  readonly host: Host;
  /** The user's own settings, with the flags applied. */
  readonly settings: Settings;
  /** Words for `harness run`, keyed by the flag that they begin with. */
  readonly flags: ReadonlyMap<string, readonly string[]>;
  readonly runtime: string | null;
  readonly folder: string;
  /** How often a row is tried again after its model or box was away. */
  readonly retries: number;
  /** Rows change their folders themselves: during the run, or by applying the chosen candidate. */
  readonly inPlace: boolean;
  /** The clone is already here, as in a pod; null: it is fetched. */
  readonly tree: string | null;
  /** The environment variables of the rows' runs; left out: this process's. */
  readonly env?: NodeJS.ProcessEnv;
  /** Keep each session as a bundle next to its patch. */
  readonly bundles: boolean;
  readonly warn: (text: string) => void;
  /** Runs the given work one at a time, since everything collected of a row is in memory meanwhile. */
  readonly alone: <T>(work: () => Promise<T>) => Promise<T>;
  readonly begun: (id: string, pid: number) => Promise<void>;
  readonly ended: (id: string) => Promise<void>;
}

/** Why a row could not begin. */
class RowFault extends Error {
  override readonly name = "RowFault";
  readonly why: RowCause;

  constructor(why: RowCause, message: string) {
    super(message);
    this.why = why;
  }
}

/** The outcome of one try. */
interface TryResult {
  readonly outcome: Pick<RowResult, "status" | "exit_code" | "reason" | "cause">;
  readonly finished: FinishedRun | undefined;
}

/** Causes outside the row, which may be gone at the next try. */
export const TRANSIENT: ReadonlySet<RowCause | null> = new Set<RowCause>(["model", "sandbox"]);
const FIRST_WAIT_MS = 2000;
const MAX_WAIT_MS = 60_000;

/**
 * Runs a row to its end. Rejects if the signal cut the row off, so that it has not finished, or if nothing can be kept.
 */
export async function runRow(row: BatchRow, plan: RowPlan, signal: AbortSignal): Promise<RowResult> {
  const started = performance.now();
  let usage: Usage | null = null;
  for (let retries = 0; ; retries += 1) {
    const mayRetry = retries < plan.retries;
    const { outcome, finished } = await tryRow(row, plan, { mayRetry }, signal);
    usage = plus(usage, finished?.usage);
    if (!mayRetry || !isTransient(outcome.cause, finished, row, plan)) {
      const duration_ms = Math.round(performance.now() - started);
      return resultOf(row, { outcome, finished }, { usage, attempts: retries, duration_ms });
    }
    const ms = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** retries);
    const why = visibleLine(outcome.reason.split("\n")[0] ?? "");
    plan.warn(`row ${row.row} is retried in ${ms / 1000} s (${outcome.cause}): ${why}`);
    await sleep(ms, undefined, { signal });
  }
}

const plus = (before: Usage | null, more: Usage | undefined): Usage | null =>
  more === undefined ? before : sumUsage(before ?? NO_USAGE, more);

/**
 * Whether the row may be tried again. A run that has begun to change its folder is not repeated on top of its changes.
 */
function isTransient(
  cause: RowCause | null,
  finished: FinishedRun | undefined,
  row: BatchRow,
  { inPlace }: RowPlan,
): boolean {
  if (!TRANSIENT.has(cause)) return false;
  if (!inPlace || row.kind === "repo") return true;
  const { changes, tool_calls } = finished ?? {};
  if (changes === undefined || changes === null) return (tool_calls ?? 0) === 0;
  return changes.added.length + changes.modified.length + changes.deleted.length === 0;
}

async function tryRow(
  row: BatchRow,
  plan: RowPlan,
  { mayRetry }: { readonly mayRetry: boolean },
  signal: AbortSignal,
): Promise<TryResult> {
  try {
    await using place = await placeOf(row, plan, signal);
    const ran = await runChild({
      words: wordsFor(row, plan, place),
      env: plan.env ?? process.env,
      input: row.prompt,
      signal,
      onStart: (pid) => void plan.begun(row.id, pid).catch(() => undefined),
    });
    await plan.ended(row.id);
    const finished = finishedIn(ran.stdout);
    const outcome = outcomeOf(ran, finished);
    if (signal.aborted && (outcome.cause === "interrupted" || outcome.cause === "killed"))
      throw signal.reason;
    const session = finished?.session;
    const again = mayRetry && isTransient(outcome.cause, finished, row, plan);
    if (again || session === undefined) return { outcome, finished };
    const fault = await keepRowFiles(row, plan, { session, passing: place.passing });
    return { outcome: fault === undefined || outcome.cause !== null ? outcome : fault, finished };
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    return { outcome: faultOf(thrown), finished: undefined };
  }
}

/** Keeps the files of a row next to its result. If they cannot be kept, and the row itself is to blame, returns why. */
async function keepRowFiles(
  row: BatchRow,
  { host, folder, bundles, alone, warn }: RowPlan,
  of: { readonly session: string; readonly passing: boolean },
): Promise<TryResult["outcome"] | undefined> {
  const name = `${row.row}-${row.id}`;
  try {
    const left = await alone(() => collectRow({ host, folder, name, bundle: bundles, ...of }));
    if (left.length > 0)
      warn(
        `row ${row.row}: its patch leaves out paths that a patch cannot express (${left.length}): ${left[0]}`,
      );
    return undefined;
  } catch (thrown) {
    if (thrown instanceof OutLost) throw thrown;
    const reason = `its changes cannot be determined: ${reasonOf(thrown)}`;
    warn(`row ${row.row}: ${reason}`);
    return { status: "failed", exit_code: EXIT.failed, reason, cause: "patch" };
  }
}

interface Place extends AsyncDisposable {
  readonly folder: string;
  /** The folder is a clone, deleted when the row has ended. */
  readonly passing: boolean;
}

async function placeOf(row: BatchRow, plan: RowPlan, signal: AbortSignal): Promise<Place> {
  if (plan.tree !== null)
    return { folder: plan.tree, passing: true, [Symbol.asyncDispose]: () => Promise.resolve() };
  if (row.kind === "repo") return cloneOf(row, plan, signal);
  const folder = path.resolve(row.target);
  const found = await stat(folder).catch((thrown: unknown) => {
    throw new RowFault("dir", `there is no folder ${row.target}: ${reasonOf(thrown)}`);
  });
  if (!found.isDirectory()) throw new RowFault("dir", `${row.target} is not a folder`);
  return { folder, passing: false, [Symbol.asyncDispose]: () => Promise.resolve() };
}

/**
 * Clones as `harness vet` does: in a box of its own, with nothing of the user's, and without obeying anything in the
 * repository.
 */
async function cloneOf(row: BatchRow, plan: RowPlan, signal: AbortSignal): Promise<Place> {
  const { settings, runtime, warn } = plan;
  const host = withCloneCache(plan.host);
  const [{ subjectNamed }, { stage }] = await Promise.all([
    import("../vet/vet-box.ts"),
    import("../vet/staging.ts"),
  ]);
  const options = { host, settings, runtime, maxMs: 0, warn, onProgress: () => undefined };
  const named = await subjectNamed(row.target);
  const staged = await stage(options, await asClone(named, row.target), signal);
  if (staged.notRun !== null) {
    await staged[Symbol.asyncDispose]();
    throw new RowFault("repo", `${row.target}: ${staged.notRun}`);
  }
  return { folder: staged.tree, passing: true, [Symbol.asyncDispose]: () => staged[Symbol.asyncDispose]() };
}

/** No run may write in the harness's own folders, so clones lie in a neighbour of the cache, on the same disk. */
const withCloneCache = (host: Host): Host => ({
  ...host,
  places: { ...host.places, cache: `${host.places.cache}-clones` },
});

async function asClone(
  named: Subject,
  target: string,
): Promise<Exclude<Subject, { readonly kind: "folder" }>> {
  if (named.kind !== "folder") return named;
  const inner = await lstat(path.join(named.path, ".git")).catch(() => undefined);
  if (inner?.isDirectory() === true) return { kind: "git", from: { path: named.path }, ref: null };
  throw new RowFault(
    "repo",
    `${target} is not a git repository; next: a row with "dir" works on a folder as it is`,
  );
}

function wordsFor(row: BatchRow, plan: RowPlan, place: Place): readonly string[] {
  const { max_turns, max_time, max_tokens, max_cost, max_tool_calls } = row.limits;
  const own = {
    "--mode": row.mode,
    "--env": row.env,
    "--check": row.check,
    "--max-turns": max_turns,
    "--max-time": max_time,
    "--max-tokens": max_tokens,
    "--max-cost": max_cost,
    "--max-tool-calls": max_tool_calls,
    // Nothing in a clone has to be preserved, but only a layer shows what was thrown away.
    ...(place.passing ? { "--isolation": plan.settings.isolation === "copy" ? "copy" : "overlay" } : {}),
  };
  const entries = Object.entries(own).filter(([, value]) => value !== undefined);
  const flags = new Map(plan.flags);
  for (const [name] of entries) flags.delete(name);
  // With a read-only row, several attempts would be an error, even if only the batch asks for them.
  if (row.mode === "read-only") flags.delete("--attempts");
  return [
    "run",
    "--json",
    "--quiet",
    ...[...flags.values()].flat(),
    ...entries.map(([name, value]) => `${name}=${value}`),
    `--cwd=${place.folder}`,
    "-",
  ];
}

const OF_CODE: ReadonlyMap<number, readonly [RowResult["status"], RowCause]> = new Map<
  number,
  readonly [RowResult["status"], RowCause]
>([
  [EXIT.failed, ["failed", "failed"]],
  [EXIT.usage, ["failed", "usage"]],
  [EXIT.budget, ["budget", "budget"]],
  [EXIT.refused, ["refused", "refused"]],
  [EXIT.model, ["model", "model"]],
  [EXIT.sandbox, ["sandbox", "sandbox"]],
  [EXIT.parked, ["parked", "parked"]],
  [EXIT.hangup, ["interrupted", "interrupted"]],
  [EXIT.interrupted, ["interrupted", "interrupted"]],
  [EXIT.terminated, ["interrupted", "interrupted"]],
]);

/**
 * The status and cause of a run with this exit code; any code that is not one of our own means that the run was killed.
 */
export const causeOfCode = (code: number): readonly [RowResult["status"], RowCause] =>
  OF_CODE.get(code) ?? ["failed", "killed"];

/** The exit code that a shell reports for a killed program. */
export const KILLED = 137;

function outcomeOf(ran: ChildEnd, finished: FinishedRun | undefined): TryResult["outcome"] {
  const exit_code = ran.code ?? KILLED;
  const reason = reasonIn(ran, finished);
  if (exit_code === EXIT.done) return { status: "done", exit_code, reason, cause: null };
  const [status, cause] = causeOfCode(exit_code);
  const unproven = cause === "failed" && (finished?.verified?.exit_code ?? 0) !== 0;
  return { status, exit_code, reason, cause: unproven ? "check" : cause };
}

function reasonIn({ code, stdout, stderr }: ChildEnd, finished: FinishedRun | undefined): string {
  const reason = finished?.reason ?? refusalIn(stdout) ?? lastLines(stderr);
  return code === null ? `its process was killed. ${reason}`.trim() : reason;
}

/** The outcome of a row that never became a run. */
function faultOf(thrown: unknown): TryResult["outcome"] {
  if (thrown instanceof RowFault)
    return {
      status: "failed",
      exit_code: EXIT.usage,
      reason: thrown.message,
      cause: thrown.why,
    };
  if (thrown instanceof OutLost || !(thrown instanceof HarnessError)) throw thrown;
  const { exit, message, remedy } = thrown;
  const reason = `${message}${remedy === "" ? "" : `; next: ${remedy}`}`;
  const [status, cause] =
    exit === EXIT.sandbox ? (["sandbox", "sandbox"] as const) : (["failed", "repo"] as const);
  return { status, exit_code: exit, reason, cause };
}

function resultOf(
  { row, id, kind, target }: BatchRow,
  { outcome, finished }: TryResult,
  whole: Pick<RowResult, "usage" | "attempts" | "duration_ms">,
): RowResult {
  const { status, exit_code, reason, cause } = outcome;
  const { attempts, duration_ms, usage } = whole;
  return {
    type: "row.finished",
    row,
    id,
    [kind]: target,
    status,
    exit_code,
    reason,
    cause,
    session: finished?.session ?? null,
    turns: finished?.turns ?? null,
    tool_calls: finished?.tool_calls ?? null,
    usage,
    changes: finished?.changes ?? null,
    verified: finished?.verified ?? null,
    attempts,
    duration_ms,
  };
}

interface Collecting {
  readonly host: Host;
  readonly session: string;
  readonly folder: string;
  /** What the files are called, without their extensions. */
  readonly name: string;
  /** The session's workspace goes away: its changes are only in the patch. */
  readonly passing: boolean;
  /** Also keep the whole session as a file. */
  readonly bundle: boolean;
}

/** Permissions as the umask allows, as for any file of the user's. */
const modeOf = (): number => 0o666 & ~process.umask();

/**
 * Writes the patch, the report and the audit of a row: each is whole or not there. Returns the paths whose change no
 * patch can hold. If the folder accepts no more, throws the error that ends the batch.
 */
async function collectRow({
  host,
  session: id,
  folder,
  name,
  passing,
  bundle,
}: Collecting): Promise<readonly string[]> {
  return withSessions(host, async (store) => {
    const session = store.open(id);
    const waiting = await diffOfLayer(host, store, session, () => undefined);
    const { files } = waiting ?? (await diffOfSession(host, session, 0));
    const { text, left } = gitPatchOf(files);
    const page = reportPage(sessionReport(session));
    const at = path.join(folder, name);
    try {
      await replaceFile(`${at}.patch`, text, { mode: modeOf(), lasts: "content" });
      await replaceFile(`${at}.html`, page, { mode: modeOf(), lasts: "content" });
      await copyWhole(path.join(host.places.state, "audit", `${id}.jsonl`), `${at}.audit.jsonl`);
      if (bundle) {
        const bytes = await bundleBytes(host, store, session, () => undefined);
        await replaceFile(`${at}.bundle.tar`, bytes, { lasts: "content" });
      }
    } catch (thrown) {
      throw outFolderLost(folder, thrown);
    }
    if (passing) await removeLayer(host, session);
    return left;
  });
}

/** An audit may be long, so it is not read into this process. */
async function copyWhole(from: string, to: string): Promise<void> {
  const aside = `${to}.${randomUUID()}`;
  try {
    await copyFile(from, aside, constants.COPYFILE_EXCL);
    await using handle = await open(aside, "r+");
    await handle.chmod(modeOf());
    await handle.sync();
    await rename(aside, to);
  } catch (thrown) {
    await rm(aside, { force: true }).catch(() => undefined);
    throw thrown;
  }
}
