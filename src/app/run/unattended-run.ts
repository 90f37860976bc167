import { Limits, type LimitsGiven } from "../../agent/limits.ts";
import { answer } from "../../cli/command.ts";
import { type BudgetFlags, configFor, limitsFrom, workspaceOf } from "../../cli/settings.ts";
import { promptFrom } from "../../cli/terminal.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { priceOf } from "../../models/usage.ts";
import { earlierSession, newSession, openSessions } from "../session-access.ts";
import { noteTo } from "../stderr-messages.ts";
import { refuseUnbuilt, runWorkspace } from "../workspace.ts";
import { interruption } from "./interruption.ts";
import { answerFor, runTask, type TaskFlags } from "./run-task.ts";

export interface RunFlags extends BudgetFlags, TaskFlags {
  readonly continue: boolean;
  readonly resume?: string | undefined;
  readonly fork?: boolean | undefined;
  readonly cwd?: string | undefined;
}

const nothingToFork = (): HarnessError =>
  new HarnessError(
    EXIT.usage,
    "--fork goes with --continue or --resume",
    'harness run --continue --fork "…"',
  );

const GO_ON = "Go on with the task.";

/** One task to its end, with nobody there; its exit code. */
export async function runUnattended(words: readonly string[], flags: RunFlags): Promise<number> {
  const { settings, origins } = await configFor({ ...flags });
  refuseUnbuilt(settings);
  const budget = limitsFrom(flags, settings.max_turns);
  refuseUnpriced(budget, settings);
  const limits = new Limits(budget, () => performance.now());
  const goesOn = flags.continue || flags.resume !== undefined;
  if (flags.fork === true && !goesOn) throw nothingToFork();
  const prompt = await promptFrom(words, goesOn ? GO_ON : undefined);
  // A file that cannot be used ends it before there is a session.
  await answerFor(flags["output-schema"]);
  using store = openSessions(noteTo(flags.quiet));
  const given = await runWorkspace(workspaceOf({ cwd: flags.cwd }));
  const earlier = earlierSession(store, flags, given);
  const elsewhere = earlier !== undefined && flags.cwd === undefined;
  const workspace = elsewhere ? await runWorkspace(earlier.info().workspace) : given;
  const session = earlier ?? newSession(store, settings, { workspace, prompt });
  using interrupted = interruption();
  const { signal } = interrupted;
  const resumed = earlier !== undefined;
  const finished = await runTask({
    settings,
    origins,
    flags,
    limits,
    store,
    session,
    resumed,
    workspace,
    prompt,
    signal,
  });
  if (!flags.json && finished.answer !== null) answer(finished.answer);
  return finished.exit_code;
}

/** A limit of cost that nothing could be held against is no limit. */
function refuseUnpriced({ cost }: LimitsGiven, { prices, chat_model }: Settings): void {
  if (cost === undefined || priceOf(chat_model, prices) !== undefined) return;
  const row = JSON.stringify([{ model: chat_model, input: 1, output: 5 }]);
  throw new HarnessError(
    EXIT.usage,
    `--max-cost: no price is known for ${chat_model}`,
    `harness config set prices '${row}'   (per million tokens)`,
  );
}
