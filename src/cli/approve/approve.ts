import { userInfo } from "node:os";
import { Interrupted } from "../../agent/interrupted.ts";
import { Limits } from "../../agent/limits.ts";
import { isSameParking, type Parked, parkedIn } from "../../core/parked.ts";
import type { Session } from "../../core/session.ts";
import { answer } from "../command.ts";
import { noteTo } from "../note.ts";
import { play } from "../run/play.ts";
import type { Reprise } from "../run/play-parts.ts";
import { interruption } from "../run/signals.ts";
import { runWorkspace } from "../run/workspace.ts";
import { openSessions } from "../session-seat.ts";
import { refuseUnbuilt } from "../unbuilt.ts";
import { judgingIn, lastingRule, writeRules } from "./lasting-rule.ts";
import { type AnswerFlags, unsaid, type Word, wordOn } from "./said.ts";
import { nothingWaits, originsOf, settingsOf, waitingRun } from "./waiting-run.ts";

export interface ApproveFlags extends AnswerFlags {
  readonly json: boolean;
  readonly quiet: boolean;
}

/** Answers what waits in a session, and goes on with its run to the end; the run's exit code. */
export async function approve(id: string, flags: ApproveFlags): Promise<number> {
  const note = noteTo(flags.quiet);
  using store = openSessions(note);
  const session = store.open(id);
  const parked = waitingRun(session);
  const { question, given, strict } = parked;
  const settings = settingsOf(parked);
  refuseUnbuilt(settings);
  const workspace = await runWorkspace(session.info().workspace);
  using interrupted = interruption();
  const { signal } = interrupted;
  const word = await wordOn(question, { id: session.id, flags }, signal);
  const limits = new Limits(given.limits, () => performance.now());
  limits.resume(parked.spent);
  const { runtime, schema } = given;
  const playing = play({
    settings,
    origins: originsOf(parked),
    flags: {
      json: flags.json,
      quiet: flags.quiet,
      strict,
      ...(runtime === null ? {} : { runtime }),
      ...(schema === null ? {} : { "output-schema": schema }),
    },
    limits,
    store,
    session,
    resumed: true,
    workspace,
    prompt: given.task,
    signal,
    reprise: { parked, claim: () => claimed({ session, parked, word, workspace, note }) },
  });
  const finished = await playing.catch((thrown: unknown) => {
    throw thrown instanceof Interrupted ? unsaid(session.id, thrown.signal) : thrown;
  });
  if (!flags.json && finished.answer !== null) answer(finished.answer);
  return finished.exit_code;
}

interface Claim {
  readonly session: Session;
  readonly parked: Parked;
  readonly word: Word;
  readonly workspace: string;
  readonly note: (text: string) => void;
}

/** Of several that answer at the same time one goes on. A rule that cannot be had makes a yes for the session of it. */
async function claimed({ session, parked, word, workspace, note }: Claim): ReturnType<Reprise["claim"]> {
  const { question } = parked;
  const { call, tool, text } = question;
  const judging = await judgingIn(workspace);
  const rule = word.said === "always" ? lastingRule(question, judging) : undefined;
  const said = rule?.kind === "none" ? "session" : word.said;
  const first = session.appendIf({ kind: "answered", question, word: said }, (records) => {
    const waiting = parkedIn(records);
    return waiting !== undefined && isSameParking(waiting, parked);
  });
  if (!first) throw nothingWaits(session.id);
  if (rule?.kind === "none") noRule(rule.reason);
  if (rule?.kind === "rules") {
    const written = await writeRules(rule.rules);
    if ("reason" in written) noRule(written.reason);
    else note(`allowed from now on by ${written.file}`);
  }
  const event = { type: "approval", call, tool, text, said, by: userName(), from: word.from } as const;
  return { event, runs: said !== "deny" };
}

const noRule = (reason: string): void =>
  noteTo(false)(`no rule was written: ${reason}; it is a yes for this session`);

/** A user id may have no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "unknown");
  }
}
