import { existsSync } from "node:fs";
import path from "node:path";
import type { AgentContext } from "../../agent/agent-context.ts";
import { type Finished, resumeRequest, runRequest, type RunRequest } from "../../agent/agent-run.ts";
import { unattended } from "../../agent/approvers.ts";
import { EndRules } from "../../agent/ending/end-rules.ts";
import { guessIntent } from "../../agent/ending/intent.ts";
import { type AnswerGate, FittedAnswer, NEW_BOX, PlainAnswer, SAME_BOX } from "../../agent/ending/outcome.ts";
import type { Limits } from "../../agent/limits.ts";
import { reasonOf } from "../../core/errors.ts";
import type { Emit, EventBody } from "../../core/events.ts";
import type { Intent } from "../../core/model-provider.ts";
import type { AnswerGrant } from "../../core/network.ts";
import type { Approver } from "../../core/ports.ts";
import { lastStep, type Parked, type RunOptions, type Session } from "../../core/session.ts";
import { type Extensions, NO_EXTENSIONS } from "../../core/tool.ts";
import { isSmallWindow } from "../../models/model-kinds.ts";
import { unlessAborted } from "../../platform/waits.ts";
import type { Renderer } from "../../render/renderers.ts";
import type { Host } from "../host.ts";
import { modelClient } from "../model-access.ts";
import { openExtensions } from "../project/open-extensions.ts";
import type { Untrusted } from "../project/project-trust.ts";
import { checkpointsFor, undoneSteps } from "../sessions/checkpoint-access.ts";
import { agentBox } from "./agent-box.ts";
import {
  agentContext,
  type AskedModel,
  askedModel,
  openEvents,
  openSession,
  type RunEvents,
  type SessionParts,
  tellIfSmall,
} from "./composition.ts";
import {
  aboutRun,
  failedRun,
  type RunProgress,
  runRenderer,
  startedEvent,
  untrustedNotice,
  whereChangesAre,
} from "./event-sink.ts";
import type { LazyBox } from "./lazy-box.ts";
import {
  hasWorked,
  onlyContinues,
  onlyWanted,
  stepsBefore,
  testsNote,
  undoNote,
  verificationFor,
  yamlError,
} from "./person-request.ts";
import type { Observers } from "./run-observers.ts";
import { HarnessRequests } from "./session-grants.ts";
import { briefingFrom } from "./session-state.ts";

/** What a run is asked that goes on without a task of its own. */
export const GO_ON = "Go on with the task.";

/** One request with nobody there, from its first event to its last. */
export async function runTask(input: RunInput): Promise<Finished> {
  await using events = await openEvents(input, input.show ?? shownRun(input), input.observers);
  const progress: RunProgress = { sink: events };
  try {
    return await runToEnd(input, events, progress);
  } catch (thrown) {
    if (events.begun()) events.failed(thrown);
    return failedRun(thrown, input, progress);
  }
}

function shownRun({ flags, settings, origins, session, workspace }: RunInput): Renderer {
  const { notify, isolation } = settings;
  const waits = isolation === "bind" ? "here" : "waiting";
  const changes = flags.passing === true ? "gone" : waits;
  const tells = { notify, title: session.info().title, workspace };
  return runRenderer({ ...flags, changes, origins, tells });
}

async function runToEnd(input: RunInput, events: RunEvents, progress: RunProgress): Promise<Finished> {
  const { signal, parkedRun } = input;
  await using run = await openRun(input, events);
  const { agent, extensions } = run;
  progress.agent = agent;
  const request = await requestOf(input, run);
  // The tools of servers belong into the first request, however long they take to list them.
  await unlessAborted(Promise.resolve(extensions.ready?.()), signal);
  const running =
    parkedRun === undefined
      ? runRequest(agent, request, signal)
      : resumeRequest(agent, request, parkedRun.parked, signal);
  progress.finished = await running.catch(async (thrown: unknown) => {
    // Asked now, while the box is still there.
    const seen = await request.changes(true).catch(() => undefined);
    Object.assign(progress, { seen, where: whereChangesAre(input, seen?.changes ?? null) });
    throw thrown;
  });
  return progress.finished;
}

/** Everything that a run works with; `composition.ts` says in which order it is opened, and why. */
interface OpenRun extends AsyncDisposable {
  readonly agent: AgentContext;
  readonly box: LazyBox;
  readonly extensions: Extensions;
  readonly model: AskedModel;
  /** For the model, on the form of its answer. */
  readonly answerNote: string;
}

async function openRun(input: RunInput, events: RunEvents): Promise<OpenRun> {
  const { host, settings, flags, prompt, signal, parkedRun, replayed } = input;
  const { emit } = events;
  if (parkedRun === undefined) await begin(input, events);
  await using opened = new AsyncDisposableStack();
  // Disposed of after the box, whose commands may write until then.
  const checkpoints = opened.use(await checkpointsFor({ ...input, since: stepsBefore(input), emit }));
  const box = opened.use(boxFor(input, emit));
  box.noBox.addEventListener("abort", () => events.failed(box.noBox.reason), { once: true });
  const { gate: answer, note: answerNote } = await requiredAnswer(flags["output-schema"]);
  const approval = parkedRun && (await claimedApproval(parkedRun, box, signal));
  if (approval !== undefined) events.begin([startedEvent({ ...input, task: prompt }), approval.event]);
  const around = { ...input, session: input.session.id, box: () => unlessAborted(box.box(), signal), emit };
  const requests = opened.use(new HarnessRequests({ ...around, domains: () => settings.allow_domains }));
  // Extensions may reach anything; a replay adds nothing to a recorded conversation.
  const extensions = replayed ? NO_EXTENSIONS : opened.use(await openExtensions({ ...around, requests }));
  const model = askedModel(modelClient(host, settings), input);
  // Started early, to be there for the first call; a greeting needs no box.
  if ((flags.intent ?? guessIntent(prompt, settings.mode)) !== "direct") box.warm();
  const own = { passing: replayed !== undefined, waits: parkedRun !== undefined };
  const session = opened.use(await openSession(input, { extensions, box: around.box, ...own }));
  const { history } = session.state.memory;
  const agent = await agentContext({
    ...input,
    ...session,
    sink: events,
    checkpoints,
    box,
    model,
    approver: replayed?.approver ?? unattended(settings.on_ask),
    once: approval,
    requests,
    briefing: briefingFrom(box, session.systemPrompt, { history, signal }),
    answer,
    ends: await endRulesFor(input, model),
    parked: parkedRun?.parked,
    boxNote: approval?.note,
  });
  await tellIfSmall(model, emit);
  const closing = opened.move();
  return { agent, box, extensions, model, answerNote, [Symbol.asyncDispose]: () => closing.disposeAsync() };
}

/** What an answer has to prove; null in the replay of a run whose end needed no proof. */
async function endRulesFor(input: RunInput, model: AskedModel): Promise<EndRules | null> {
  if (input.replayed?.asks === false) return null;
  const unbuilt = async (): Promise<string | undefined> =>
    (await import("../boxes/workspace-environment.ts")).unbuiltEnvironment(input);
  const ends = new EndRules(await verificationFor({ ...input, model }, unbuilt), yamlError);
  const isWeak = model.isWeak((await model.capabilities).parameters);
  ends.facts = { request: input.prompt, isWeak, only: onlyWanted(input) };
  ends.candidate = input.flags.candidate;
  return ends;
}

async function requestOf(
  input: RunInput,
  { agent, box, extensions, model, answerNote }: OpenRun,
): Promise<RunRequest> {
  const { host, flags, session, resumed, prompt, workspace, signal } = input;
  const { context: tokens, origin } = await model.capabilities;
  const isNarrow = model.isServed && isSmallWindow({ tokens, known: origin.context !== "guess" });
  return {
    prompt,
    taken: resumed ? undoNote(agent.history.messages, await undoneSteps(host, session)) : "",
    note: (await testsNote({ ...input, model })) + answerNote,
    ...(flags.intent === undefined ? {} : { intent: flags.intent }),
    strict: flags.strict,
    goesOn: onlyContinues(input),
    workedBefore: resumed && hasWorked(session),
    preflight: flags.preflight === true || isNarrow || agent.isWeak,
    session: session.id,
    changes: (last) => box.changes(agent.checkpoints, signal, last),
    record: (each) => session.append(each),
    options: runOptions(input),
    park: async () => {
      await extensions.rest?.();
      return box.park();
    },
    leave: (parked) => box.finish(parked),
    ...(flags.record === true ? { recorded: () => recordedBy(input, agent.emit) } : {}),
    workspace,
  };
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

async function begin(input: RunInput, events: RunEvents): Promise<void> {
  events.begin([startedEvent({ ...input, task: input.prompt }), ...untrustedNotice(input.untrusted)]);
  if (input.resumed) await giveUpFrozen(input.host, input.session);
}

/** Claims the approval only once the box is there, so that a missing box does not use it up. */
async function claimedApproval({ parked, claim }: ParkedRun, box: LazyBox, signal: AbortSignal) {
  const { kept } = await unlessAborted(box.box(), signal);
  return { ...(await claim()), question: parked.question, note: kept === undefined ? NEW_BOX : SAME_BOX };
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

/** The box of a run: kept where the run is parked, and taken up again where it is resumed. */
function boxFor(input: RunInput, emit: Emit): LazyBox {
  const { settings, session, flags, warn, parkedRun } = input;
  const keeping = { keep: session.id, parks: true, takesUp: parkedRun?.parked.kept };
  const opening = {
    ...input,
    ...keeping,
    runtime: flags.runtime ?? null,
    mayGrant: settings.on_ask === "park",
  };
  return agentBox(() => opening, emit, { warn });
}

/** Continuing without an answer discards the frozen box, and the leftovers of an interrupted parking. */
export async function giveUpFrozen(host: Host, { id }: Session): Promise<void> {
  if (!existsSync(path.join(host.places.state, "parked"))) return;
  const { dropFrozen } = await import("../boxes/box-access.ts");
  await dropFrozen(host, id);
}

/** The check of the final answer, and what the model is told of it after the task. */
export async function requiredAnswer(
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

export interface RunInput extends SessionParts {
  readonly flags: TaskFlags;
  readonly limits: Limits;
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
