import { EXIT, HarnessError } from "../../core/errors.ts";
import { Limits } from "../../agent/limits.ts";
import { answer } from "../command.ts";
import { noteTo } from "../note.ts";
import { openSessions } from "../session-seat.ts";
import { configFor, workspaceOf } from "../settings.ts";
import { refuseUnbuilt } from "../unbuilt.ts";
import { answerFor } from "./answer-gate.ts";
import { type BudgetFlags, limitsFrom } from "./flags.ts";
import { play, type PlayFlags } from "./play.ts";
import { refuseUnpriced } from "./priced.ts";
import { promptFrom } from "./prompt.ts";
import { earlierSession, newSession } from "./session-choice.ts";
import { interruption } from "./signals.ts";
import { runWorkspace } from "./workspace.ts";

export interface RunFlags extends BudgetFlags, PlayFlags {
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
  const finished = await play({
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
