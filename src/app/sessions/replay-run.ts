import path from "node:path";
import type { Judge } from "../../agent/action-judge.ts";
import type { Finished } from "../../agent/agent-run.ts";
import { Memory } from "../../agent/context/memory.ts";
import { readConfigText } from "../../config/load-config.ts";
import { rulesOf } from "../../config/policy-rules-file.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { type Mode, runsUnattended, type Verdict } from "../../core/decision.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { AgentEvent, Emit, ResultKind } from "../../core/events.ts";
import type { Box, Approver } from "../../core/ports.ts";
import { maskSecrets } from "../../core/secrets.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import { type AnyTool, type ToolResult, NO_EXTENSIONS } from "../../core/tool.ts";
import { visible } from "../../core/visible.ts";
import { CommandPolicy } from "../../policy/decide.ts";
import { reportOf } from "../../render/build-report.ts";
import type { ChangedVerdict } from "../../render/policy-lines.ts";
import { callsOf } from "../../render/report-form.ts";
import { bashTool } from "../../tools/bash.ts";
import type { ToolContext, AskPerson } from "../../tools/tool-context.ts";
import { openBoxFor } from "../boxes/box-access.ts";
import type { Host } from "../host.ts";
import { modelClient } from "../model-access.ts";
import { ignoreRulesOf, lazyJudge } from "../project/policy-context.ts";
import { ChatBox, chatTurn, Conversation } from "../run/chat-session.ts";
import { askedModel, type SessionParts } from "../run/composition.ts";
import type { RequestedModel } from "../run/person-request.ts";
import { HarnessRequests } from "../run/session-grants.ts";
import { noteTo } from "../stderr-messages.ts";

/** A command of a session, with its outcome then. */
export interface PastCommand {
  readonly call: string;
  readonly agent: string | null;
  readonly at: number;
  readonly args: Readonly<Record<string, unknown>>;
  readonly command: string;
  readonly mode: Mode;
  readonly decision: Verdict;
  readonly ran: boolean;
  /**
   * The command as judged, including what earlier calls exported; and the folder it started in, undefined for the
   * workspace.
   */
  readonly judged: string;
  readonly folder: string | undefined;
  /** Null if the command never ended. */
  readonly then: {
    readonly kind: ResultKind;
    readonly exit_code: number | null;
    readonly text: string;
  } | null;
}

/** In the order of the calls. */
export function pastCommands(session: Session): readonly PastCommand[] {
  const parts = { session: session.info(), timeline: session.timeline(), audit: null, diff: null };
  return reportOf(parts).runs.flatMap((run) =>
    callsOf(run).flatMap(({ call, agent, at, args, verdict, end }) => {
      const { command } = args;
      if (typeof command !== "string" || verdict === null) return [];
      const { decision, runs: ran, judged } = verdict;
      return {
        call,
        agent,
        at,
        args,
        command,
        decision,
        ran,
        mode: run.mode,
        judged: judged?.commands[0] ?? command,
        folder: judged?.folder,
        then: end === null ? null : { ...end, text: wholeText(session, end) },
      };
    }),
  );
}

function wholeText(
  { outputs }: Session,
  { text, full }: { readonly text: string; readonly full: string | null },
): string {
  if (full === null) return text;
  return outputs.page(full, 0, Number.MAX_SAFE_INTEGER)?.text ?? text;
}

export interface Rerun {
  readonly call: string;
  readonly command: string;
  readonly outcome: "same" | "differs" | "not run";
  readonly then: CommandEnd | null;
  readonly now: CommandEnd | null;
  readonly difference: FirstDifference | null;
  /** Why it was not run; empty if it was. */
  readonly reason: string;
}

interface CommandEnd {
  readonly kind: ResultKind;
  readonly exit_code: number | null;
}

interface RerunParts {
  readonly box: Box;
  readonly judge: Judge;
  readonly mode: Mode;
  readonly context: Pick<ToolContext, "workspace" | "outputs" | "notes" | "timeoutMs">;
}

interface ReplayInput {
  readonly host: Host;
  readonly settings: Settings;
  readonly store: SessionStore;
  readonly session: Session;
  readonly quiet: boolean;
  readonly onResult: (rerun: Rerun) => void;
}

/** Runs the commands again over the current folder, in a box whose changes are thrown away. */
export async function replayRun(
  commands: readonly PastCommand[],
  { host, settings, store, session, quiet, onResult }: ReplayInput,
  signal: AbortSignal,
): Promise<void> {
  const { workspace, mode: then } = session.info();
  // A replay gets no network, even if the session had one.
  const mode: Mode = then === "read-only" ? then : "workspace-write";
  const shape = { ...settings, mode, allow_domains: [], secrets: {} };
  const opening = { host, settings: shape, workspace, runtime: null, watchChanges: false, keep: null };
  await using box = await openBoxFor({ ...opening, warn: noteTo(quiet) }, signal);
  const judge = await lazyJudge(host, shape, workspace)();
  const { outputs } = session;
  const context = { workspace, outputs, notes: store.notes(workspace), timeoutMs: settings.timeout };
  for await (const each of rerun(commands, { box, judge, mode, context }, signal)) onResult(each);
}

/** Runs the commands one after the other, through the same tool: each agent has a shell of its own, as it had then. */
async function* rerun(
  commands: readonly PastCommand[],
  parts: RerunParts,
  signal: AbortSignal,
): AsyncGenerator<Rerun> {
  const shells = new Map<string | null, AnyTool>();
  for (const past of commands) {
    signal.throwIfAborted();
    const tool = shells.get(past.agent) ?? shellOver(parts.context);
    shells.set(past.agent, tool);
    const made = notRunnable(past) ?? (await rerunOne(tool, past, parts, signal));
    signal.throwIfAborted();
    yield typeof made === "string" ? notRun(past, made) : compareRun(past, made);
  }
}

function shellOver(context: RerunParts["context"]): AnyTool {
  const { seen, shell, name: agent } = new Memory(context.workspace, [], () => undefined);
  return bashTool({ ...context, agent, seen, shell });
}

function notRunnable({ ran, args, then }: PastCommand): string | undefined {
  if (!ran) return "it was refused then";
  if (args["background"] === true) return "a background job has no result of its own";
  return then === null ? "it did not end then" : undefined;
}

/** The result, or why the command was not run. */
async function rerunOne(
  tool: AnyTool,
  { args }: PastCommand,
  { box, judge, mode }: RerunParts,
  signal: AbortSignal,
): Promise<ToolResult | string> {
  const prepared = tool.prepare(args);
  if (prepared.kind === "invalid") return prepared.issues.join("; ");
  const { facts, run } = prepared.state();
  const judged = judge.judge(facts);
  if (!runsUnattended(judged, mode)) return `refused now: ${judged.rules[0]?.reason ?? judged.decision}`;
  return run(() => Promise.resolve(box), signal);
}

const notRun = ({ call, command, then }: PastCommand, reason: string): Rerun => ({
  call,
  command,
  outcome: "not run",
  then: then === null ? null : ended(then),
  now: null,
  difference: null,
  reason,
});

function compareRun({ call, command, then }: PastCommand, result: ToolResult): Rerun {
  const now: CommandEnd = { kind: result.kind, exit_code: result.exitCode ?? null };
  const difference = firstDifference(then?.text ?? "", visible(result.text.toWellFormed())) ?? null;
  const same = difference === null && then?.kind === now.kind && then.exit_code === now.exit_code;
  const before = then === null ? null : ended(then);
  return { call, command, outcome: same ? "same" : "differs", then: before, now, difference, reason: "" };
}

const ended = ({ kind, exit_code }: CommandEnd): CommandEnd => ({ kind, exit_code });

interface FirstDifference {
  /** Starts at 1. */
  readonly line: number;
  /** Undefined if that output had already ended. */
  readonly then: string | undefined;
  readonly now: string | undefined;
}

/** The first difference of two results, ignoring durations and one-time advice. */
export function firstDifference(then: string, now: string): FirstDifference | undefined {
  const [a, b] = [comparable(then), comparable(now)];
  const longer = a.length > b.length ? a : b;
  const at = longer.findIndex((_, line) => a[line] !== b[line]);
  return at === -1 ? undefined : { line: at + 1, then: a[at], now: b[at] };
}

/** The ends that the shell tool writes below an output. */
const TIMED = /^\[(exit \d+, |timed out after |cancelled after )[^,:\]]*/;

const comparable = (text: string): readonly string[] =>
  maskSecrets(text)
    .split("\n")
    .filter((line) => !line.startsWith("[advice: "))
    .map((line) => line.replace(TIMED, "[$1…"));

/** The verdicts that would differ under the rules of this file, which replace the user's own. */
export async function changedVerdicts(
  { places }: Host,
  commands: readonly PastCommand[],
  file: string,
  { id, workspace }: { readonly id: string; readonly workspace: string },
): Promise<readonly ChangedVerdict[]> {
  const { home } = places;
  const text = readConfigText(file);
  if (text === undefined)
    throw new HarnessError(EXIT.usage, `${file}: there is no such file`, `ls -l ${path.dirname(file)}`);
  const rules = await rulesOf({ file, text, origin: "user" }, home);
  const ignore = await ignoreRulesOf({ places }, workspace);
  const policy = new CommandPolicy();
  return commands.flatMap(({ judged, folder, mode, decision: old, at }) => {
    const place = { mode, workspace, home, rules, ...(folder === undefined ? {} : { folder }) };
    const now = policy.decide(judged, { ...place, ...(ignore === undefined ? {} : { ignore }) });
    if (now.decision === old) return [];
    const [rule] = now.rules;
    return {
      ts: new Date(at).toISOString(),
      session: id,
      command: judged,
      mode,
      old,
      new: now.decision,
      rule: rule?.id ?? "",
      reason: rule?.reason ?? "",
    };
  });
}

interface ReplayedChatParts extends Omit<SessionParts, "settings" | "resumed" | "warn"> {
  /** Receives the errors that kept a box from starting, or ended it. */
  readonly failed: (thrown: unknown) => void;
}

/** A request of a chat, with the people and settings of then. */
interface ReplayedTurn {
  readonly text: string;
  /** The model that replied then. */
  readonly model: RequestedModel;
  readonly settings: Settings;
  readonly freshBox: boolean;
  readonly resumed: boolean;
  readonly approver: Approver;
  readonly person: AskPerson;
  readonly show: (event: AgentEvent) => void;
}

/**
 * Plays requests of a chat with the code of a chat: one memory and one box for all of them, until the mode changes or
 * the original box changed. There are no extensions and no network.
 */
export class ReplayedChat implements AsyncDisposable {
  readonly #parts: ReplayedChatParts;
  readonly #box: ChatBox;
  #settings: Settings | undefined;
  #person: AskPerson = () => Promise.resolve(undefined);
  #conversation: Conversation | undefined;

  constructor(parts: ReplayedChatParts) {
    this.#parts = parts;
    const { host, workspace, failed } = parts;
    this.#box = new ChatBox({
      opening: (keep) => ({ host, settings: this.#now(), workspace, runtime: null, keep, warn: noWords }),
      shared: false,
      failed,
    });
  }

  /** Undefined if the request came to no end. */
  async play(turn: ReplayedTurn, signal: AbortSignal): Promise<Finished | undefined> {
    const { settings, approver, show } = turn;
    if (turn.freshBox || settings.mode !== this.#settings?.mode) await this.#box.close();
    this.#settings = settings;
    this.#person = turn.person;
    const parts = { ...this.#parts, settings, warn: noWords };
    const box = this.#box;
    const conversation = (this.#conversation ??= await this.#open({ ...parts, resumed: turn.resumed }));
    const emit: Emit = (event) => box.emit(event);
    await using requests = new HarnessRequests({ ...parts, domains: () => [], emit });
    const model = askedModel(modelClient(parts.host, settings), { settings, replayed: turn, signal });
    try {
      const input = { ...parts, conversation, box, requests, model, approver, show, signal };
      return await chatTurn(input, turn.text);
    } catch (thrown) {
      if (!(thrown instanceof HarnessError) && !signal.aborted) throw thrown;
      this.#parts.failed(thrown);
      return undefined;
    }
  }

  /**
   * Takes back the part of the conversation that a person took back; before the first request here, that is part of an
   * earlier run.
   */
  takeBack(to: number): void {
    const { session } = this.#parts;
    if (this.#conversation === undefined)
      session.append(to === 0 ? { kind: "cleared" } : { kind: "rolled_back", to });
    else if (to === 0) this.#conversation.forget();
    else this.#conversation.takeBack(to);
  }

  /** Closes the box, because the layer with its changes goes away; the conversation stays. */
  leaveBox(): Promise<void> {
    return this.#box.close();
  }

  /** Lets other code continue the session. */
  async rest(): Promise<void> {
    await this.#box.close();
    await this.#conversation?.opened[Symbol.asyncDispose]();
    this.#conversation = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#conversation?.opened[Symbol.asyncDispose]();
    } finally {
      await this.#box[Symbol.asyncDispose]();
    }
  }

  #now(): Settings {
    if (this.#settings === undefined) throw new TypeError("a box of a chat in which nothing was asked");
    return this.#settings;
  }

  #open(parts: SessionParts): Promise<Conversation> {
    return Conversation.open(parts, {
      extensions: NO_EXTENSIONS,
      box: this.#box.now,
      current: () => this.#now(),
      person: (question, signal) => this.#person(question, signal),
      passing: true,
    });
  }
}

const noWords = (): void => undefined;
