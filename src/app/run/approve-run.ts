import { userInfo } from "node:os";
import { Limits } from "../../agent/limits.ts";
import { addGrants } from "../../config/config-edit.ts";
import { DEFAULTS, SETTING_KEYS, type Settings } from "../../config/settings-schema.ts";
import {
  EXIT,
  type ExitCode,
  HarnessError,
  Interrupted,
  reasonOf,
  type Signal,
  signalOf,
} from "../../core/errors.ts";
import type { EventBody } from "../../core/events.ts";
import type { Question } from "../../core/ports.ts";
import type { AnswerGrant } from "../../core/network.ts";
import {
  grantedIn,
  isSameParking,
  type Parked,
  PARKED_FORM,
  parkedIn,
  type Session,
  type SessionRecord,
} from "../../core/session.ts";
import type { Finished } from "../../agent/agent-run.ts";
import { checkNetwork } from "../boxes/granted-network.ts";
import { type Host, runWorkspace } from "../host.ts";
import { checkModelSettings, priceToday } from "../model-access.ts";
import { LastingRules, type Prompter } from "./prompter.ts";
import { openSessions } from "../sessions/session-access.ts";
import { holdWhenFree, hostForCopy } from "../sessions/session-hold.ts";
import { noteTo } from "../stderr-messages.ts";
import { interruption } from "../interruption.ts";
import { type ParkedRun, runTask } from "./run-task.ts";

export interface ApproveRequest {
  readonly host: Host;
  /** The session's id, or the beginning of it. */
  readonly id: string;
  /** The answer given by a flag; undefined: ask the person. */
  readonly answer: ApprovalWord | undefined;
  /** The message to the model that a flag adds to a no. */
  readonly because?: string | undefined;
  /** The command that a flag gives to run in place of the waiting one. */
  readonly edited?: string | undefined;
  /** Domains that are granted with a yes. */
  readonly domains: readonly string[];
  /** Undefined if there is no person to ask. */
  readonly prompter: Prompter | undefined;
  readonly json: boolean;
  readonly quiet: boolean;
}

/**
 * Answers the waiting call of a session, and continues its run to the end. If a command that was edited on the terminal
 * needs an approval itself, the person is asked at once.
 */
export async function approve(request: ApproveRequest): Promise<Finished> {
  for (let answer: ApprovalWord | undefined = request.answer; ; answer = undefined) {
    const { finished, edits } = await answerOnce({ ...request, answer });
    if (finished.status !== "parked" || !edits) return finished;
  }
}

/**
 * The session's box waits on the engine that made it, whether a flag, a setting or docker's own settings named that
 * engine.
 */
async function hostOf(host: Host, id: string, { engine }: Settings): Promise<Host> {
  if (host.engine !== null || engine !== null) return { ...host, engine: host.engine ?? engine };
  return (await hostForCopy(host, id))?.host ?? host;
}

interface Answered {
  readonly finished: Finished;
  /** A person at the terminal replaced the command. */
  readonly edits: boolean;
}

async function answerOnce(request: ApproveRequest): Promise<Answered> {
  const { id, json, quiet } = request;
  const note = noteTo(quiet);
  using store = openSessions(request.host, note);
  const session = store.open(id);
  const parked = waitingRun(session);
  const { question, given, strict } = parked;
  const settings = settingsOf(parked, session.records());
  const host = await hostOf(request.host, session.id, settings);
  checkNetwork(host, settings);
  checkModelSettings(host, settings);
  const workspace = runWorkspace(session.info().workspace);
  using interrupted = interruption();
  const { signal } = interrupted;
  const rules = new LastingRules(host, workspace);
  const word = await answerTo(question, { ...request, id: session.id, rules }, signal);
  await using _held = await holdFor(host, session, parked, signal);
  const limits = new Limits(given.limits, () => performance.now(), { price: priceToday(settings) });
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
    warn: note,
    prompt: given.task,
    signal,
    parkedRun: { parked, claim: () => claimRun({ host, session, parked, word, rules, note }) },
  });
  const finished = await running.catch((thrown: unknown) => {
    throw thrown instanceof Interrupted ? unanswered(session.id, thrown.signal) : thrown;
  });
  const edits = word.edited !== undefined && word.from === "terminal";
  return { finished, edits: edits && parkedIn(session.records())?.question.replaces !== undefined };
}

interface Claim {
  readonly host: Host;
  readonly session: Session;
  readonly parked: Parked;
  readonly word: PersonAnswer;
  readonly rules: LastingRules;
  readonly note: (text: string) => void;
}

/**
 * Records the answer; of several simultaneous answers only one continues. If no rule can be written, "always" becomes a
 * yes for the session.
 */
async function claimRun({ host, session, parked, word, rules, note }: Claim): ReturnType<ParkedRun["claim"]> {
  const { question } = parked;
  const { call, tool, text } = question;
  // Unreadable rules end the command here, before the answer is used up.
  await rules.readable();
  // Granted domains make the call contained from then on, so that it needs no rule.
  const rule = word.said === "always" && word.domains.length === 0 ? await rules.shown(question) : undefined;
  const approval = rule?.kind === "none" ? "session" : word.said;
  const grant = grantOf(word);
  const granting = grant === undefined ? {} : { grant };
  const telling = tellingOf(word);
  const first = session.appendIf({ kind: "answered", question, word: approval, ...granting }, (records) =>
    isParkedAs(records, parked),
  );
  if (!first) throw nothingWaits(session.id);
  if (rule?.kind === "none") noRule(rule.reason);
  if (rule?.kind === "rules") {
    const written = await rules.write(question);
    if (written.kind === "none") noRule(written.reason);
    else note(`allowed from now on by ${written.file}`);
  }
  if (grant?.for === "always") await keepGrants(host, grant.domains, note);
  const by = { said: approval, by: userName(), from: word.from };
  return {
    event: { type: "approval", call, tool, text, ...by, ...telling, ...granting },
    runs: approval !== "deny",
    ...telling,
    ...granting,
  };
}

const tellingOf = ({ told, edited }: PersonAnswer): Pick<PersonAnswer, "told" | "edited"> => ({
  ...(told === undefined ? {} : { told }),
  ...(edited === undefined ? {} : { edited }),
});

function grantOf({ said, domains }: PersonAnswer): AnswerGrant | undefined {
  if (said === "deny" || domains.length === 0) return undefined;
  return { domains, for: said === "once" ? "call" : said };
}

/** Keeps grants in the user's own settings; if these cannot be written, the grants hold for the session. */
async function keepGrants(
  { places }: Host,
  domains: readonly string[],
  note: (text: string) => void,
): Promise<void> {
  const [file] = places.configFiles;
  try {
    await addGrants(file, domains);
    note(`granted from now on by ${file}`);
  } catch (thrown) {
    noteTo(false)(`granted for this session only: ${reasonOf(thrown)}`);
  }
}

const noRule = (reason: string): void =>
  noteTo(false)(`no rule was written: ${reason}; it is allowed for this session`);

/** A user id may have no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "unknown");
  }
}

const isParkedAs = (records: readonly SessionRecord[], parked: Parked): boolean => {
  const waiting = parkedIn(records);
  return waiting !== undefined && isSameParking(waiting, parked);
};

/** Parking a box takes a moment. */
const PARKING_MS = 20_000;

/**
 * Takes the hold on the session. The process that parked it may not have finished; once another process has answered,
 * nothing waits any more.
 */
function holdFor(host: Host, { id, records }: Session, parked: Parked, signal: AbortSignal) {
  const until = performance.now() + PARKING_MS;
  const waits = (): boolean => {
    if (!isParkedAs(records(), parked)) throw nothingWaits(id);
    if (signal.aborted) throw unanswered(id, signalOf(signal));
    return performance.now() < until;
  };
  return holdWhenFree(host, id, waits, `wait for it to end, then: harness approve ${id}`);
}

/** The waiting call of a session, if this version can continue with it; otherwise the command ends with 2. */
function waitingRun(session: Session): Parked {
  const parked = parkedIn(session.records());
  if (parked === undefined) throw nothingWaits(session.id);
  const { form, given } = parked;
  const keys = Object.keys(form === PARKED_FORM ? given.settings : {});
  if (keys.toSorted().join() === SETTING_KEYS.toSorted().join()) return parked;
  throw new HarnessError(
    EXIT.usage,
    `${session.id} was parked by another version of harness, and only that version can continue it`,
    `use that version, or continue without an answer: harness run --resume ${session.id} "…"`,
  );
}

const nothingWaits = (id: string): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `nothing in ${id} waits for approval: it was already answered, or nothing was asked`,
    `harness sessions show ${id}`,
  );

/**
 * All settings, as they were when the run began, with the domains granted since. A setting that a later version added
 * has its default.
 */
const settingsOf = ({ given }: Parked, records: readonly SessionRecord[]): Settings => {
  const kept = Object.entries(given.settings).map(([key, { value }]) => [key, value] as const);
  const settings: Settings = Object.assign({}, DEFAULTS, Object.fromEntries(kept));
  return { ...settings, allow_domains: [...new Set([...settings.allow_domains, ...grantedIn(records)])] };
};

const originsOf = ({ given }: Parked): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(given.settings).map(([key, { origin }]) => [key, origin]));

type ApprovalWord = Extract<EventBody, { readonly type: "approval" }>["said"];

interface PersonAnswer {
  readonly said: ApprovalWord;
  /** Message to the model, with a no. */
  readonly told?: string;
  /** With a yes: the command to run instead. */
  readonly edited?: string;
  readonly domains: readonly string[];
  readonly from: "terminal" | "flag";
}

/** The person's answer, by a flag or at the terminal. An interrupted question gives no answer. */
async function answerTo(
  question: Question,
  {
    id,
    answer,
    because,
    edited,
    domains,
    prompter,
    rules,
  }: Pick<ApproveRequest, "id" | "answer" | "because" | "edited" | "domains" | "prompter"> & {
    readonly rules: LastingRules;
  },
  signal: AbortSignal,
): Promise<PersonAnswer> {
  if (answer !== undefined && edited !== undefined) requireCommand(question, id);
  if (answer !== undefined)
    return {
      said: answer,
      domains,
      from: "flag",
      ...(because === undefined ? {} : { told: because }),
      ...(edited === undefined ? {} : { edited }),
    };
  if (prompter === undefined)
    throw new HarnessError(
      EXIT.usage,
      "there is no terminal to ask on: answer with a flag",
      `harness approve ${id} --once (or --session, --always, --edit, --deny)`,
    );
  return { ...(await typed(question, { id, prompter, rules }, signal)), from: "terminal" };
}

/** Only tools with a command can have it replaced. */
function requireCommand({ tool, args, fixed }: Question, id: string): void {
  if (typeof args["command"] === "string" && fixed !== true) return;
  const message = `${tool} has no command to edit`;
  throw new HarnessError(
    EXIT.usage,
    message,
    `harness approve ${id} --deny --because "what you want instead"`,
  );
}

const CODES = {
  SIGINT: EXIT.interrupted,
  SIGTERM: EXIT.terminated,
  SIGHUP: EXIT.hangup,
  "reader-left": EXIT.hangup,
  overtaken: EXIT.interrupted,
} as const satisfies Record<Signal, ExitCode>;

const unanswered = (id: string, signal: Signal): HarnessError =>
  new HarnessError(CODES[signal], "no answer was given: it still waits", `harness approve ${id}`);

async function typed(
  question: Question,
  { id, prompter, rules }: { readonly id: string; readonly prompter: Prompter; readonly rules: LastingRules },
  signal: AbortSignal,
): Promise<Omit<PersonAnswer, "from">> {
  const reply = await prompter.approve(question, signal, rules.shown);
  if (reply === "interrupt") throw unanswered(id, "SIGINT");
  if (signal.aborted) throw unanswered(id, signalOf(signal));
  const { grants = [] } = question;
  if (typeof reply === "object" && "edited" in reply)
    return { said: "once", domains: [], edited: reply.edited };
  if (typeof reply === "object") return { said: "deny", domains: [], told: reply.no };
  if (reply === "yes" || reply === "no") return { said: reply === "yes" ? "once" : "deny", domains: [] };
  return { said: reply === "call" ? "once" : reply, domains: grants };
}
