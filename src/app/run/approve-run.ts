import { userInfo } from "node:os";
import { Limits } from "../../agent/limits.ts";
import { addRules } from "../../config/policy-rules-file.ts";
import { DEFAULTS, SETTING_KEYS, type Settings } from "../../config/settings-schema.ts";
import { EXIT, type ExitCode, HarnessError, Interrupted, type Signal, signalOf } from "../../core/errors.ts";
import type { EventBody } from "../../core/events.ts";
import type { Question } from "../../core/ports.ts";
import { isSameParking, type Parked, PARKED_FORM, parkedIn, type Session } from "../../core/session.ts";
import { type CommandContext, CommandPolicy } from "../../policy/decide.ts";
import { ruleFor } from "../../policy/remember-rule.ts";
import type { RuleForm } from "../../policy/rule.ts";
import type { Finished } from "../../agent/agent-run.ts";
import { checkNetwork } from "../granted-network.ts";
import { type Host, runWorkspace } from "../host.ts";
import { workspacePolicy } from "../policy-context.ts";
import type { Prompter } from "../prompter.ts";
import { openSessions } from "../session-access.ts";
import { noteTo } from "../stderr-messages.ts";
import { interruption } from "../interruption.ts";
import { type ParkedRun, runTask } from "./run-task.ts";

export interface ApproveRequest {
  readonly host: Host;
  /** The session, or how its id begins. */
  readonly id: string;
  /** What was said by a flag; undefined: the question is asked. */
  readonly said: Said | undefined;
  /** Undefined where nobody is there to be asked. */
  readonly prompter: Prompter | undefined;
  readonly json: boolean;
  readonly quiet: boolean;
}

/** Answers what waits in a session, and goes on with its run to the end. */
export async function approve(request: ApproveRequest): Promise<Finished> {
  const { host, id, json, quiet } = request;
  const note = noteTo(quiet);
  using store = openSessions(host, note);
  const session = store.open(id);
  const parked = waitingRun(session);
  const { question, given, strict } = parked;
  const settings = settingsOf(parked);
  checkNetwork(host, settings);
  const workspace = await runWorkspace(session.info().workspace);
  using interrupted = interruption();
  const { signal } = interrupted;
  const word = await wordOn(question, { ...request, id: session.id }, signal);
  const limits = new Limits(given.limits, () => performance.now());
  limits.resume(parked.spent);
  const { runtime, schema, unverified } = given;
  const running = runTask({
    host,
    settings,
    origins: originsOf(parked),
    flags: {
      json,
      quiet,
      strict,
      ...(runtime === null ? {} : { runtime }),
      ...(schema === null ? {} : { "output-schema": schema }),
      ...(unverified === undefined ? {} : { "no-verify": true }),
    },
    limits,
    store,
    session,
    resumed: true,
    workspace,
    prompt: given.task,
    signal,
    parkedRun: { parked, claim: () => claimed({ host, session, parked, word, workspace, note }) },
  });
  return await running.catch((thrown: unknown) => {
    throw thrown instanceof Interrupted ? unsaid(session.id, thrown.signal) : thrown;
  });
}

interface Claim {
  readonly host: Host;
  readonly session: Session;
  readonly parked: Parked;
  readonly word: Word;
  readonly workspace: string;
  readonly note: (text: string) => void;
}

/** Of several that answer at the same time one goes on. A rule that cannot be had makes a yes for the session of it. */
async function claimed({
  host,
  session,
  parked,
  word,
  workspace,
  note,
}: Claim): ReturnType<ParkedRun["claim"]> {
  const { question } = parked;
  const { call, tool, text } = question;
  const judging = await workspacePolicy(host, workspace);
  const rule = word.said === "always" ? lastingRule(question, judging) : undefined;
  const said = rule?.kind === "none" ? "session" : word.said;
  const first = session.appendIf({ kind: "answered", question, word: said }, (records) => {
    const waiting = parkedIn(records);
    return waiting !== undefined && isSameParking(waiting, parked);
  });
  if (!first) throw nothingWaits(session.id);
  if (rule?.kind === "none") noRule(rule.reason);
  if (rule?.kind === "rules") {
    const written = await writeRules(host, rule.rules);
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
/** A setting that a later version has is as it is from the start. */
const settingsOf = ({ given }: Parked): Settings => {
  const kept = Object.entries(given.settings).map(([key, { value }]) => [key, value] as const);
  return Object.assign({}, DEFAULTS, Object.fromEntries(kept));
};

const originsOf = ({ given }: Parked): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(given.settings).map(([key, { origin }]) => [key, origin]));

type Judging = Omit<CommandContext, "mode" | "folder">;

type LastingRule =
  | { readonly kind: "rules"; readonly rules: readonly RuleForm[] }
  | { readonly kind: "none"; readonly reason: string };

/** The rules of the user that would allow this from now on; or why there can be none. */
function lastingRule({ tool, text, folder }: Question, judging: Judging): LastingRule {
  if (tool !== "bash") return { kind: "none", reason: `rules are about commands, and this is ${tool}` };
  const context = { ...judging, ...(folder === undefined ? {} : { folder }) };
  const made = ruleFor(text, context, new CommandPolicy());
  return made.kind === "rules" ? made : { kind: "none", reason: made.reason };
}

/** The file that they went into, or why they could not. */
async function writeRules(
  { env }: Host,
  rules: readonly RuleForm[],
): Promise<{ readonly file: string } | { readonly reason: string }> {
  try {
    return { file: await addRules(env, rules) };
  } catch (thrown) {
    if (!(thrown instanceof HarnessError)) throw thrown;
    return { reason: thrown.message };
  }
}

type Said = Extract<EventBody, { readonly type: "approval" }>["said"];

interface Word {
  readonly said: Said;
  readonly from: "terminal" | "flag";
}

/** What a person says: by a flag, or to the question on the terminal. Nothing is said where it is interrupted. */
async function wordOn(
  question: Question,
  { id, said, prompter }: Pick<ApproveRequest, "id" | "said" | "prompter">,
  signal: AbortSignal,
): Promise<Word> {
  if (said !== undefined) return { said, from: "flag" };
  if (prompter === undefined)
    throw new HarnessError(
      EXIT.usage,
      "there is no terminal to ask you on: say it with a flag",
      `harness approve ${id} --once (or --session, --always, --deny)`,
    );
  return { said: await typed(question, { id, prompter }, signal), from: "terminal" };
}

const CODES = {
  SIGINT: EXIT.interrupted,
  SIGTERM: EXIT.terminated,
  SIGHUP: EXIT.hangup,
  "reader-left": EXIT.hangup,
  overtaken: EXIT.interrupted,
} as const satisfies Record<Signal, ExitCode>;

const unsaid = (id: string, signal: Signal): HarnessError =>
  new HarnessError(CODES[signal], "nothing was said: it still waits", `harness approve ${id}`);

async function typed(
  question: Question,
  { id, prompter }: { readonly id: string; readonly prompter: Prompter },
  signal: AbortSignal,
): Promise<Said> {
  const reply = await prompter.approve(question, signal);
  if (reply === "interrupt") throw unsaid(id, "SIGINT");
  if (signal.aborted) throw unsaid(id, signalOf(signal));
  return reply === "yes" ? "once" : "deny";
}
