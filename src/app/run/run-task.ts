import { existsSync } from "node:fs";
import path from "node:path";
import type { AgentContext } from "../../agent/agent-context.ts";
import { type Finished, resumeRequest, runRequest } from "../../agent/agent-run.ts";
import { remembering, unattended } from "../../agent/approvers.ts";
import { EndRules } from "../../agent/ending/end-rules.ts";
import { PromptSize } from "../../agent/context/history.ts";
import { type AnswerGate, FittedAnswer, NEW_BOX, PlainAnswer, SAME_BOX } from "../../agent/ending/outcome.ts";
import { guessIntent } from "../../agent/ending/intent.ts";
import type { Limits } from "../../agent/limits.ts";
import type { Config } from "../../config/load-config.ts";
import type { Settings } from "../../config/settings-schema.ts";
import {
  lastStep,
  type Parked,
  type RunOptions,
  type Session,
  type SessionRecord,
  type SessionStore,
  settledIn,
} from "../../core/session.ts";
import { reasonOf } from "../../core/errors.ts";
import type { Emit, EventBody } from "../../core/events.ts";
import type { Intent } from "../../core/model-provider.ts";
import { type Extensions, NO_EXTENSIONS } from "../../core/tool.ts";
import type { AnswerGrant } from "../../core/network.ts";
import type { Approver, Index } from "../../core/ports.ts";
import { unlessAborted } from "../../platform/waits.ts";
import { checkpointsFor, undoneSteps } from "../sessions/checkpoint-access.ts";
import { openExtensions } from "../project/open-extensions.ts";
import { HarnessRequests, SessionGrants } from "./session-grants.ts";
import type { Host } from "../host.ts";
import { modelClient } from "../model-access.ts";
import type { Untrusted } from "../project/project-trust.ts";
import { briefingFrom, type RunIndex, runIndex, sessionPrompt, sessionState } from "./session-state.ts";
import type { Renderer } from "../../render/renderers.ts";
import { isSmallWindow } from "../../models/model-kinds.ts";
import { noteTo } from "../stderr-messages.ts";
import { agentContext, type AgentParts, runBox } from "./agent-assembly.ts";
import {
  onlyContinues,
  hasWorked,
  requestedModel,
  smallModelEvent,
  stepsBefore,
  testsNote,
  undoNote,
  verificationFor,
  onlyWanted,
  yamlError,
} from "./person-request.ts";
import {
  aboutRun,
  failedRun,
  type RunProgress,
  runRenderer,
  runSink,
  startedEvent,
  type WaitingSink,
  waitingSink,
  whereChangesAre,
} from "./event-sink.ts";
import type { LazyBox } from "./lazy-box.ts";
import { type Observers, observersFor } from "./run-observers.ts";

/** What a run is asked that goes on without a task of its own. */
export const GO_ON = "Go on with the task.";

/** One request with nobody there, from its first event to its last. */
export async function runTask(input: RunInput): Promise<Finished> {
  const show = input.show ?? shownRun(input);
  await using own = input.observers === undefined ? await observersFor(input) : undefined;
  const observers = input.observers ?? own;
  const failed = (thrown: unknown): void => observers?.failed(thrown);
  const sink = waitingSink(
    runSink(input, (event) => {
      show.take(event);
      observers?.take(event);
    }),
  );
  const progress: RunProgress = { sink, failed };
  try {
    return await runSteps(input, progress);
  } catch (thrown) {
    if (sink.begun()) failed(thrown);
    return failedRun(thrown, input, progress);
  } finally {
    show.end();
  }
}

function shownRun({ flags, settings, origins, session, workspace }: RunInput): Renderer {
  const { notify, isolation } = settings;
  const waits = isolation === "bind" ? "here" : "waiting";
  const changes = flags.passing === true ? "gone" : waits;
  const tells = { notify, title: session.info().title, workspace };
  return runRenderer({ ...flags, changes, origins, tells });
}

async function runSteps(input: RunInput, progress: RunProgress): Promise<Finished> {
  const { flags, session, signal, parkedRun } = input;
  const { sink, failed } = progress;
  if (parkedRun === undefined) await begin(input, sink);
  // Disposed of after the box, whose commands may write until then.
  await using checkpoints = await checkpointsFor({ ...input, since: stepsBefore(input), emit: sink.emit });
  await using box = boxFor(input, sink.emit);
  box.noBox.addEventListener("abort", () => failed?.(box.noBox.reason), { once: true });
  const { gate, note } = await answerFor(flags["output-schema"]);
  const approval = await claimedApproval(parkedRun, box, signal);
  if (approval !== undefined) sink.begin([startedEvent({ ...input, task: input.prompt }), approval.event]);
  await using index = indexFor(input, box);
  await using requests = requestsFor(input, sink.emit);
  await using extensions = await extensionsFor(input, { box, requests, emit: sink.emit });
  const unbuilt = async (): Promise<string | undefined> =>
    (await import("../boxes/workspace-environment.ts")).unbuiltEnvironment(input);
  const model = beginModel(input, box);
  const personRequest = { ...input, parameters: async () => (await model.capabilities).parameters };
  const ends =
    input.replayed?.asks === false
      ? null
      : new EndRules(await verificationFor(personRequest, unbuilt), yamlError);
  const { agent, isSmall } = await contextFor(input, {
    sink,
    box,
    checkpoints,
    answer: gate,
    ends,
    approval,
    index,
    extensions,
    requests,
    ...model,
  });
  progress.agent = agent;
  if (ends !== null) {
    ends.facts = { request: input.prompt, isWeak: agent.isWeak, only: onlyWanted(input) };
    ends.candidate = flags.candidate;
  }
  const taken = input.resumed ? undoNote(agent.history.messages, await undoneSteps(input.host, session)) : "";
  const request = {
    prompt: input.prompt,
    taken,
    note: (await testsNote(personRequest)) + note,
    ...(flags.intent === undefined ? {} : { intent: flags.intent }),
    strict: flags.strict,
    goesOn: onlyContinues(input),
    workedBefore: input.resumed && hasWorked(session),
    preflight: flags.preflight === true || isSmall,
    session: session.id,
    changes: (last: boolean) => box.changes(checkpoints, signal, last),
    record: (each: SessionRecord) => session.append(each),
    options: runOptions(input),
    park: async () => {
      await extensions.rest?.();
      return box.park();
    },
    leave: (parked: boolean) => box.finish(parked),
    ...(flags.record === true ? { recorded: () => recordedBy(input, sink.emit) } : {}),
    workspace: input.workspace,
  };
  // The tools of servers belong into the first request, however long they take to list them.
  await unlessAborted(Promise.resolve(extensions.ready?.()), signal);
  const running =
    parkedRun === undefined
      ? runRequest(agent, request, signal)
      : resumeRequest(agent, request, parkedRun.parked, signal);
  const finished = await running.catch(async (thrown: unknown) => {
    // Asked now, while the box is still there.
    const seen = await request.changes(true).catch(() => undefined);
    Object.assign(progress, { seen, where: whereChangesAre(input, seen?.changes ?? null) });
    throw thrown;
  });
  progress.finished = finished;
  return finished;
}

/** Failing to write a proposal does not fail the run. */
async function recordedBy({ host, session }: RunInput, emit: Emit): Promise<Pick<Finished, "recorded">> {
  try {
    const { writeProposal } = await import("../project/policy-context.ts");
    return { recorded: await writeProposal(host, session) };
  } catch (thrown) {
    emit({ type: "notice", text: `--record: no rules could be proposed: ${reasonOf(thrown)}` });
    return {};
  }
}

async function begin(input: RunInput, sink: WaitingSink): Promise<void> {
  sink.begin([startedEvent({ ...input, task: input.prompt })]);
  const { untrusted } = input;
  if (untrusted !== undefined)
    sink.emit({ type: "notice", text: untrusted.text, untrusted: untrusted.items });
  if (input.resumed) await giveUpFrozen(input.host, input.session);
}

/** Claims the approval only once the box is there, so that a missing box does not use it up. */
async function claimedApproval(
  parkedRun: ParkedRun | undefined,
  box: LazyBox,
  signal: AbortSignal,
): Promise<(Awaited<ReturnType<ParkedRun["claim"]>> & { readonly note: string }) | undefined> {
  if (parkedRun === undefined) return undefined;
  const { kept } = await unlessAborted(box.box(), signal);
  return { ...(await parkedRun.claim()), note: kept === undefined ? NEW_BOX : SAME_BOX };
}

/** How the run was started, for resuming it once it is parked. */
const runOptions = ({ settings, origins, flags, limits, prompt, session, parkedRun }: RunInput): RunOptions =>
  parkedRun?.parked.given ?? {
    task: prompt,
    limits: limits.values,
    settings: aboutRun(settings, origins).settings,
    steps: lastStep(session.steps),
    runtime: flags.runtime ?? null,
    schema: flags["output-schema"] === undefined ? null : path.resolve(flags["output-schema"]),
    ...(flags["no-verify"] === true ? { unverified: true } : {}),
  };

/** Asks the server about its model while everything else is prepared. */
function beginModel({ host, settings, flags, prompt, signal }: RunInput, box: LazyBox) {
  const model = modelClient(host, settings);
  const capabilities = model.capabilities(settings.chat_model, signal);
  // Started early, too, to be there for the first call; a greeting needs no box.
  if ((flags.intent ?? guessIntent(prompt, settings.mode)) !== "direct") box.warm();
  return { model, capabilities };
}

/** What a run has opened for its agent. */
interface Opened extends Pick<
  AgentParts,
  "sink" | "box" | "checkpoints" | "answer" | "ends" | "capabilities"
> {
  readonly approval: Awaited<ReturnType<typeof claimedApproval>>;
  readonly index: Index;
  readonly extensions: Extensions;
  readonly requests: HarnessRequests;
  readonly model: ReturnType<typeof modelClient>;
}

async function contextFor(
  { host, settings, flags, store, session, workspace, limits, signal, parkedRun, replayed }: RunInput,
  opened: Opened,
): Promise<{ readonly agent: AgentContext; readonly isSmall: boolean }> {
  const { approval, index, extensions, requests, model, ...own } = opened;
  const { sink, box, capabilities } = own;
  const pinned = await sessionPrompt(host, settings, workspace, extensions.prompt);
  const requested = requestedModel({ settings, replayed });
  const state = sessionState({
    session,
    store,
    workspace,
    timeoutMs: settings.timeout,
    prompt: pinned.text,
    index,
    extensions,
    passing: replayed !== undefined,
    waits: parkedRun !== undefined,
  });
  const agent = await agentContext({
    ...own,
    host,
    settings,
    isWeak: requested.isWeak,
    workspace,
    outputs: session.outputs,
    state,
    provider: model.provider(),
    size: new PromptSize(settings.chat_model, () => state.offers),
    briefing: briefingFrom(box, pinned, { history: state.memory.history, signal }),
    limits,
    approver: remembering(
      {
        always: settledIn(session.records()),
        ...(parkedRun === undefined || approval === undefined
          ? {}
          : { once: { ...approval, question: parkedRun.parked.question } }),
      },
      replayed?.approver ?? unattended(settings.on_ask),
    ),
    // Longer grants are in the session already.
    grants: new SessionGrants({
      host,
      settings,
      workspace,
      box,
      requests,
      warn: noteTo(flags.quiet),
      keep: () => Promise.resolve(),
    }),
    ...(parkedRun === undefined ? {} : { parked: parkedRun.parked }),
    boxNote: approval?.note,
    signal,
  });
  const { context: tokens, origin, parameters } = await capabilities;
  const isNarrow = requested.isServed && isSmallWindow({ tokens, known: origin.context !== "guess" });
  const small = smallModelEvent(requested, parameters);
  if (small !== undefined) sink.emit(small);
  return { agent, isSmall: isNarrow || agent.isWeak };
}

const requestsFor = ({ host, settings, workspace, flags }: RunInput, emit: Emit): HarnessRequests =>
  new HarnessRequests({
    host,
    settings,
    workspace,
    domains: () => settings.allow_domains,
    emit,
    warn: noteTo(flags.quiet),
  });

const extensionsFor = (
  { host, settings, origins, flags, workspace, session, signal, replayed }: RunInput,
  { box, requests, emit }: { readonly box: LazyBox; readonly requests: HarnessRequests; readonly emit: Emit },
): Promise<Extensions> => {
  // Extensions may reach anything; a replay adds nothing to a recorded conversation.
  if (replayed !== undefined) return Promise.resolve(NO_EXTENSIONS);
  return openExtensions({
    host,
    settings,
    origins,
    workspace,
    session: session.id,
    box: () => unlessAborted(box.box(), signal),
    requests,
    emit,
    warn: noteTo(flags.quiet),
    signal,
  });
};

/** What finds code for a run. */
const indexFor = (
  { host, settings, origins, workspace, session, signal }: RunInput,
  box: LazyBox,
): RunIndex =>
  runIndex({
    host,
    settings: () => settings,
    origins,
    workspace,
    session: session.id,
    box: () => unlessAborted(box.box(), signal),
  });

/** The box of a run: kept where the run is parked, and taken up again where it is resumed. */
function boxFor({ host, settings, session, workspace, flags, parkedRun }: RunInput, emit: Emit): LazyBox {
  const opening = {
    host,
    settings,
    workspace,
    runtime: flags.runtime ?? null,
    keep: session.id,
    parks: true,
    takesUp: parkedRun?.parked.kept,
    mayGrant: settings.on_ask === "park",
    warn: noteTo(flags.quiet),
  };
  return runBox(opening, emit);
}

/** Continuing without an answer discards the frozen box, and the leftovers of an interrupted parking. */
export async function giveUpFrozen(host: Host, { id }: Session): Promise<void> {
  if (!existsSync(path.join(host.places.state, "parked"))) return;
  const { dropFrozen } = await import("../boxes/box-access.ts");
  await dropFrozen(host, id);
}

/** The check of the final answer, and what the model is told of it after the task. */
export async function answerFor(
  schemaFile: string | undefined,
): Promise<{ readonly gate: AnswerGate; readonly note: string }> {
  if (schemaFile === undefined) return { gate: new PlainAnswer(), note: "" };
  const { readOutputSchema } = await import("./output-schema.ts");
  const { schema, check } = await readOutputSchema(schemaFile);
  const note = `\n\n[harness] When you are done, your final answer must be JSON alone, without prose or fences, that fits this JSON Schema:\n${JSON.stringify(schema)}`;
  return { gate: new FittedAnswer(schema, check), note };
}

/** Flags of a run beside the settings. */
export interface TaskFlags {
  readonly intent?: Intent | undefined;
  readonly "output-schema"?: string | undefined;
  readonly strict: boolean;
  readonly "no-verify"?: boolean | undefined;
  readonly preflight?: boolean | undefined;
  readonly record?: boolean | undefined;
  readonly json: boolean;
  readonly quiet: boolean;
  readonly passing?: boolean;
  /** Its number from 1 on among several candidates, of which the first that passes the check is applied. */
  readonly candidate?: number;
  readonly runtime?: string | undefined;
}

export interface RunInput {
  readonly host: Host;
  readonly settings: Settings;
  /** Who set each of them. */
  readonly origins: Config["origins"];
  readonly flags: TaskFlags;
  readonly limits: Limits;
  readonly store: SessionStore;
  readonly session: Session;
  readonly resumed: boolean;
  readonly workspace: string;
  readonly prompt: string;
  readonly signal: AbortSignal;
  /** Shared with other runs; left out, the run has its own. */
  readonly observers?: Observers;
  /** Shows it as a part of something else. */
  readonly show?: Renderer;
  /** What the project brings but is not trusted: told at the start. */
  readonly untrusted?: Untrusted | undefined;
  /** Resumes a parked run. */
  readonly parkedRun?: ParkedRun;
  /** Replays a recorded run. */
  readonly replayed?: ReplayedRun;
}

interface ReplayedRun {
  /** Gives the recorded answers. */
  readonly approver: Approver;
  /** Whether an end had to be earned; in a chat it had not. */
  readonly asks: boolean;
  /** The model that replied. */
  readonly model: { readonly provider: string; readonly name: string };
}

export interface ParkedRun {
  readonly parked: Parked;
  /** Stores the approval, once there is a box to go on in; throws where somebody else was first. */
  readonly claim: () => Promise<ClaimedApproval>;
}

interface ClaimedApproval {
  readonly event: Extract<EventBody, { readonly type: "approval" }>;
  readonly runs: boolean;
  /** Told to the model with a no. */
  readonly told?: string;
  /** The command to run in its place. */
  readonly edited?: string;
  /** Granted to it. */
  readonly grant?: AnswerGrant;
}
