import { userInfo } from "node:os";
import path from "node:path";
import { Limits } from "../../agent/limits.ts";
import { Interrupted, type Signal, signalOf } from "../../agent/outcome.ts";
import { Keyboard } from "../../cli/chat/terminal-input.ts";
import { answer } from "../../cli/command.ts";
import { placesFrom } from "../../config/places.ts";
import { loadRules } from "../../config/policy-file.ts";
import { addRules } from "../../config/policy-rules-file.ts";
import { SETTING_KEYS, type Settings } from "../../config/settings-schema.ts";
import { EXIT, type ExitCode, HarnessError } from "../../core/errors.ts";
import type { EventBody } from "../../core/events.ts";
import type { Question } from "../../core/ports.ts";
import { isSameParking, type Parked, PARKED_FORM, parkedIn, type Session } from "../../core/session.ts";
import { type CommandContext, CommandPolicy } from "../../policy/decide.ts";
import { ruleFor } from "../../policy/rules/remember-rule.ts";
import type { RuleForm } from "../../policy/rules/rule.ts";
import { stderr } from "../../render/tty/output.ts";
import { ignoreRulesOf } from "../policy-context.ts";
import { openSessions } from "../session-access.ts";
import { noteTo } from "../stderr-messages.ts";
import { refuseUnbuilt, runWorkspace } from "../workspace.ts";
import { questionsOn } from "./chat-controller.ts";
import { interruption } from "./interruption.ts";
import { type ParkedRun, runTask } from "./run-task.ts";

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
  const playing = runTask({
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
async function claimed({ session, parked, word, workspace, note }: Claim): ReturnType<ParkedRun["claim"]> {
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

/** What waits in a session, as this version can go on with it; anything else ends with 2. */
function waitingRun(session: Session): Parked {
  const parked = parkedIn(session.records());
  if (parked === undefined) throw nothingWaits(session.id);
  const { form, given } = parked;
  const keys = Object.keys(form === PARKED_FORM ? given.settings : {});
  if (keys.toSorted().join() === SETTING_KEYS.toSorted().join()) return parked;
  throw new HarnessError(
    EXIT.usage,
    `${session.id} was parked by another version of harness, which alone can go on from there`,
    `use that one, or go on without an answer: harness run --resume ${session.id} "…"`,
  );
}

const nothingWaits = (id: string): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `nothing waits for a word in ${id}: it is answered, or was never asked`,
    `harness sessions show ${id}`,
  );

/** All of them are there, as they were when the run began. */
const settingsOf = ({ given }: Parked): Settings =>
  Object.fromEntries(
    Object.entries(given.settings).map(([key, { value }]) => [key, value]),
  ) as unknown as Settings;

const originsOf = ({ given }: Parked): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(given.settings).map(([key, { origin }]) => [key, origin]));

type Judging = Omit<CommandContext, "mode" | "folder">;

type LastingRule =
  | { readonly kind: "rules"; readonly rules: readonly RuleForm[] }
  | { readonly kind: "none"; readonly reason: string };

/** What calls are judged by, as it is now. A mistake in it ends the command. */
async function judgingIn(workspace: string): Promise<Judging> {
  const [rules, ignore] = await Promise.all([
    loadRules({ env: process.env, workspace, trusted: false }),
    ignoreRulesOf(workspace),
  ]);
  const { home } = placesFrom(process.env);
  return { workspace: path.resolve(workspace), home, rules, ...(ignore === undefined ? {} : { ignore }) };
}

/** The rules of the user that would allow this from now on; or why there can be none. */
function lastingRule({ tool, text, folder }: Question, judging: Judging): LastingRule {
  if (tool !== "bash") return { kind: "none", reason: `rules are about commands, and this is ${tool}` };
  const context = { ...judging, ...(folder === undefined ? {} : { folder }) };
  const made = ruleFor(text, context, new CommandPolicy());
  return made.kind === "rules" ? made : { kind: "none", reason: made.reason };
}

/** The file that they went into, or why they could not. */
async function writeRules(
  rules: readonly RuleForm[],
): Promise<{ readonly file: string } | { readonly reason: string }> {
  try {
    return { file: await addRules(process.env, rules) };
  } catch (thrown) {
    if (!(thrown instanceof HarnessError)) throw thrown;
    return { reason: thrown.message };
  }
}

type Said = Extract<EventBody, { readonly type: "approval" }>["said"];
type AnswerFlags = Readonly<Record<Said, boolean>>;

interface Word {
  readonly said: Said;
  readonly from: "terminal" | "flag";
}

/** What a person says: by a flag, or to the question on the terminal. Nothing is said where it is interrupted. */
async function wordOn(
  question: Question,
  { id, flags }: { readonly id: string; readonly flags: AnswerFlags },
  signal: AbortSignal,
): Promise<Word> {
  const given = (["once", "session", "always", "deny"] as const).find((each) => flags[each]);
  if (given !== undefined) return { said: given, from: "flag" };
  if (!process.stdin.isTTY || !stderr.isTTY)
    throw new HarnessError(
      EXIT.usage,
      "there is no terminal to ask you on: say it with a flag",
      `harness approve ${id} --once (or --session, --always, --deny)`,
    );
  return { said: await typed(question, id, signal), from: "terminal" };
}

const CODES = {
  SIGINT: EXIT.interrupted,
  SIGTERM: EXIT.terminated,
  SIGHUP: EXIT.hangup,
  "reader-left": EXIT.hangup,
} as const satisfies Record<Signal, ExitCode>;

const unsaid = (id: string, signal: Signal): HarnessError =>
  new HarnessError(CODES[signal], "nothing was said: it still waits", `harness approve ${id}`);

async function typed(question: Question, id: string, signal: AbortSignal): Promise<Said> {
  using keyboard = new Keyboard({
    input: process.stdin,
    write: (text) => stderr.write(text),
    onInterrupt: () => false,
    suspend: () => process.kill(process.pid, "SIGTSTP"),
  });
  const resume = (): void => keyboard.resume();
  process.on("SIGCONT", resume);
  const ask = questionsOn({ keyboard, output: stderr, pause: () => () => undefined });
  try {
    const reply = await ask(question, signal);
    if (reply === "interrupt") throw unsaid(id, "SIGINT");
    if (signal.aborted) throw unsaid(id, signalOf(signal));
    return reply === "yes" ? "once" : "deny";
  } finally {
    process.removeListener("SIGCONT", resume);
  }
}
