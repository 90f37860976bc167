import { cp, lchown, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Limits, type LimitValues } from "../../agent/limits.ts";
import type { Finished } from "../../agent/agent-run.ts";
import type { Config } from "../../config/load-config.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { checkNetwork } from "../boxes/granted-network.ts";
import { type Host, packageRoot, runWorkspace } from "../host.ts";
import { checkModelSettings, priceToday, refuseUnpriced } from "../model-access.ts";
import {
  clearLeft,
  earlierSession,
  newSession,
  openSessions,
  type SessionChoice,
} from "../sessions/session-access.ts";
import { holdSession } from "../sessions/session-hold.ts";
import { untrustedIn } from "../project/project-trust.ts";
import { noteTo } from "../stderr-messages.ts";
import { grantedIn } from "../../core/session.ts";
import { interruption } from "../interruption.ts";
import { type AttemptFlags, attemptsFor } from "./attempt-plan.ts";
import { observersFor } from "./run-observers.ts";
import { answerFor, GO_ON, runTask, type TaskFlags } from "./run-task.ts";
import { SETTING_KEYS, type Settings } from "../../config/settings-schema.ts";

/** What a run without a person is started with. */
export interface UnattendedRun {
  readonly host: Host;
  readonly config: Config;
  readonly limits: LimitValues;
  /** The folder of the run, unless the run continues a session of another folder. */
  readonly folder: string;
  /** The folder was named, so it takes precedence over the session's. */
  readonly named: boolean;
  /** The task; `otherwise` if none was given. */
  readonly prompt: (otherwise: string | undefined) => Promise<string>;
  readonly flags: TaskFlags & SessionChoice & AttemptFlags;
}

const nothingToFork = (): HarnessError =>
  new HarnessError(
    EXIT.usage,
    "--fork can only be used with --continue or --resume",
    'harness run --continue --fork "…"',
  );

/** Runs one task to its end without a person. */
export async function runUnattended({
  host,
  config: { settings, origins },
  limits: budget,
  folder,
  named,
  prompt: ask,
  flags,
}: UnattendedRun): Promise<Finished> {
  checkNetwork(host, settings);
  refuseUnpriced(budget.cost, settings);
  checkModelSettings(host, settings);
  const limits = new Limits(budget, () => performance.now(), { price: priceToday(settings) });
  const goesOn = flags.continue || flags.resume !== undefined;
  if (flags.fork === true && !goesOn) throw nothingToFork();
  const prompt = await ask(goesOn ? GO_ON : undefined);
  // Checked early: a bad file should leave no session behind.
  await answerFor(flags["output-schema"]);
  const plan = attemptsFor({ settings, origins, flags, prompt });
  if (plan.note !== undefined) noteTo(flags.quiet)(plan.note);
  await clearLeft(host);
  using store = openSessions(host, noteTo(flags.quiet));
  const here = runWorkspace(folder);
  if (plan.count > 1) {
    const { runAttempts } = await import("./attempts.ts");
    const checkNamed = settings.check !== null && flags["no-verify"] !== true;
    using stopped = interruption();
    const { signal } = stopped;
    const untrusted = await untrustedIn(host, here);
    await using observers = await observersFor({ host, settings, origins });
    const shared = {
      observers,
      host,
      settings,
      origins,
      flags,
      limits,
      store,
      workspace: here,
      prompt,
      signal,
      untrusted,
    };
    return await runAttempts({ ...shared, plan, checkNamed });
  }
  const earlier = earlierSession(store, flags, here);
  const elsewhere = earlier !== undefined && !named;
  const workspace = elsewhere ? runWorkspace(earlier.info().workspace) : here;
  const session = earlier ?? newSession(store, settings, { workspace, prompt });
  await using _held = await holdSession(host, session.id);
  const granted = grantedIn(session.records());
  using interrupted = interruption();
  return await runTask({
    host,
    settings: { ...settings, allow_domains: [...new Set([...settings.allow_domains, ...granted])] },
    origins,
    flags,
    limits,
    store,
    session,
    resumed: earlier !== undefined,
    workspace,
    prompt,
    untrusted: await untrustedIn(host, workspace),
    signal: interrupted.signal,
  });
}

const TASK = "Find out why there is a failing test, and mend the bug.";

/** A whole run over a copy of the example, done as `run` does it. */
export async function runDemo(
  host: Host,
  config: Config,
  flags: { readonly json: boolean; readonly quiet: boolean },
): Promise<Finished> {
  const settings = settingsFor(config);
  using interrupted = interruption();
  using store = openSessions(host, noteTo(flags.quiet));
  return await inExampleCopy(async (workspace) => {
    const session = newSession(store, settings, { workspace, prompt: TASK });
    await using _held = await holdSession(host, session.id);
    // The changes of a copy are thrown away with the folder.
    await using after = new AsyncDisposableStack();
    if (settings.isolation === "copy")
      after.defer(async () => {
        const { removeLayer } = await import("../sessions/session-changes.ts");
        await removeLayer(host, session);
      });
    return await runTask({
      host,
      settings,
      origins: { ...config.origins, ...demoOrigins(settings, config.settings) },
      flags: { json: flags.json, quiet: flags.quiet, strict: false, passing: true, intent: "change" },
      limits: new Limits({ turns: settings.max_turns }, () => performance.now()),
      store,
      session,
      resumed: false,
      workspace,
      prompt: TASK,
      signal: interrupted.signal,
    });
  });
}

/** The user's own model if one was chosen; otherwise the scenario. */
function settingsFor({ settings, origins }: Config): Settings {
  const chosen = ["provider", "chat_model", "base_url"].some((key) => origins[key] !== "default");
  // An engine on another machine can only make boxes over a copy.
  const isolation = settings.isolation === "copy" ? "copy" : "bind";
  const box = { mode: "workspace-write", isolation, on_ask: "contained" } as const;
  if (chosen) return { ...settings, ...box };
  const chat_model = path.join(packageRoot, "examples", "scripted-demo.jsonl");
  return { ...settings, ...box, provider: "scripted", chat_model };
}

/** The settings that the demo itself sets. */
const demoOrigins = (used: Settings, own: Settings): Readonly<Record<string, string>> =>
  Object.fromEntries(
    SETTING_KEYS.filter((key) => used[key] !== own[key]).map((key) => [key, "demo"] as const),
  );

/** Works on a copy of the example repository, owned by an ordinary user even if harness runs as root. */
async function inExampleCopy<T>(work: (workspace: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), "harness-demo-")).catch(noCopy);
  try {
    await fill(folder).catch(noCopy);
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const NOBODY = 65_534;

async function fill(folder: string): Promise<void> {
  await cp(path.join(packageRoot, "examples", "broken-sum"), folder, { recursive: true });
  if (process.getuid?.() !== 0) return;
  for (const name of ["", ...(await readdir(folder))]) await lchown(path.join(folder, name), NOBODY, NOBODY);
}

function noCopy(thrown: unknown): never {
  const message = `the demo's copy could not be made in ${tmpdir()}: ${reasonOf(thrown)}`;
  throw new HarnessError(EXIT.failed, message, "TMPDIR=/a/folder/with/space harness demo", thrown);
}
