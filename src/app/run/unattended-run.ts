import { Limits, type LimitValues } from "../../agent/limits.ts";
import type { Finished } from "../../agent/agent-run.ts";
import type { Config } from "../../config/load-config.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { grantedIn } from "../../core/session.ts";
import { checkNetwork } from "../boxes/granted-network.ts";
import { type Host, runWorkspace } from "../host.ts";
import { interruption } from "../interruption.ts";
import { checkModelSettings, priceToday, refuseUnpriced } from "../model-access.ts";
import {
  clearPassingLeftovers,
  earlierSession,
  newSession,
  openSessions,
  type SessionChoice,
} from "../sessions/session-access.ts";
import { holdSession } from "../sessions/session-hold.ts";
import { untrustedIn } from "../project/project-trust.ts";
import { noteTo } from "../stderr-messages.ts";
import { type AttemptFlags, attemptsFor } from "./attempt-plan.ts";
import { observersFor } from "./run-observers.ts";
import { requiredAnswer, GO_ON, runTask, type TaskFlags } from "./run-task.ts";

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
  await requiredAnswer(flags["output-schema"]);
  const plan = attemptsFor({ settings, origins, flags, prompt });
  const warn = noteTo(flags.quiet);
  if (plan.note !== undefined) warn(plan.note);
  await clearPassingLeftovers(host);
  using store = openSessions(host, warn);
  const here = runWorkspace(folder);
  const shared = { host, settings, origins, flags, limits, store, warn, prompt };
  if (plan.count > 1) {
    const { runAttempts } = await import("./attempts.ts");
    const checkNamed = settings.check !== null && flags["no-verify"] !== true;
    using stopped = interruption();
    const { signal } = stopped;
    const untrusted = await untrustedIn(host, here);
    await using observers = await observersFor(shared);
    return await runAttempts({ ...shared, workspace: here, signal, untrusted, observers, plan, checkNamed });
  }
  const earlier = earlierSession(store, flags, here);
  const elsewhere = earlier !== undefined && !named;
  const workspace = elsewhere ? runWorkspace(earlier.info().workspace) : here;
  const session = earlier ?? newSession(store, settings, { workspace, prompt });
  await using _held = await holdSession(host, session.id);
  const allow_domains = [...new Set([...settings.allow_domains, ...grantedIn(session.records())])];
  using interrupted = interruption();
  return await runTask({
    ...shared,
    settings: { ...settings, allow_domains },
    session,
    resumed: earlier !== undefined,
    workspace,
    untrusted: await untrustedIn(host, workspace),
    signal: interrupted.signal,
  });
}
