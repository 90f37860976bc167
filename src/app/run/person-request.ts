/**
 * A person's request: what it asks for, what was done before it, what its end has to prove, and the notes that the model
 * gets with it.
 */
import { NOTICE } from "../../agent/context/history.ts";
import { isIdle } from "../../agent/ending/deeds.ts";
import { asksToLook, asksToRun, guessIntent } from "../../agent/ending/intent.ts";
import { type Check, Verification } from "../../agent/ending/verification.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { lastStep, type Parked, type Session, type SessionRecord } from "../../core/session.ts";
import type { AgentEvent, EventBody } from "../../core/events.ts";
import type { Capabilities, Intent, Message } from "../../core/model-provider.ts";
import { visibleLine } from "../../core/visible.ts";
import { parametersFromUser } from "../../models/capabilities.ts";
import { hasFewParameters } from "../../models/model-kinds.ts";
import type { Mode } from "../../core/decision.ts";
import { firstOf } from "../../core/wording.ts";

interface PersonRequest {
  readonly settings: Pick<
    Settings,
    "check" | "mode" | "timeout" | "provider" | "capabilities" | "chat_model"
  >;
  readonly flags: {
    readonly intent?: Intent | undefined;
    readonly "no-verify"?: boolean | undefined;
    readonly strict: boolean;
    readonly candidate?: number;
  };
  readonly prompt: string;
  readonly workspace: string;
  readonly session: Session;
  readonly resumed: boolean;
  readonly parkedRun?: { readonly parked: Parked };
  readonly replayed?: { readonly model?: RequestedModel | undefined } | undefined;
  /** Left out if the model's server reports nothing of it. */
  readonly model?: { readonly capabilities: Promise<Pick<Capabilities, "parameters">> };
}

export interface RequestedModel {
  readonly provider: string;
  readonly name: string;
  /** In a replay: the number that the server reported then, if it mattered. */
  readonly parameters?: number | undefined;
}

/** The model of the run. Only served models can be small; scripted models and those of services have no size. */
export function requestedModel({ settings, replayed }: Pick<PersonRequest, "settings" | "replayed">): {
  readonly name: string;
  readonly isServed: boolean;
  /** Judged by the user's word, the model's name, or the billions of parameters that its server reports. */
  readonly isWeak: (reported?: number) => boolean;
  /** The number of billions that makes the model weak, if its name does not. */
  readonly fewBy: (reported?: number) => number | undefined;
} {
  const { provider, name, parameters }: RequestedModel = replayed?.model ?? {
    provider: settings.provider,
    name: settings.chat_model,
  };
  const isServed = provider !== "anthropic" && provider !== "scripted";
  const fromUser = parametersFromUser(name, settings.capabilities);
  const isWeak = (reported?: number): boolean =>
    isServed && hasFewParameters(name, parameters ?? reported, fromUser);
  const byName = isServed && hasFewParameters(name, parameters);
  return {
    name,
    isServed,
    isWeak,
    fewBy: (reported) => (isWeak(reported) && !byName ? (fromUser ?? reported) : undefined),
  };
}

/** The event for a model that is weak by its user's or its server's word but not by its name. */
export function smallModelEvent(
  model: ReturnType<typeof requestedModel>,
  reported?: number,
): EventBody | undefined {
  const parameters = model.fewBy(reported);
  return parameters === undefined ? undefined : { type: "model.small", parameters };
}

/** The checkpoint before the run; for a parked run, the one that it had stored. */
export const stepsBefore = ({ session, parkedRun }: PersonRequest): number | undefined =>
  parkedRun === undefined ? lastStep(session.steps) : parkedRun.parked.given.steps;

const isDeed = (record: SessionRecord): boolean =>
  record.kind === "message" &&
  record.message.role === "assistant" &&
  record.message.calls.some(({ name, args }) => !isIdle(name, args));

/** Read from the log, because the history does not say how calls ended. A fork has no log of the time before it. */
export function hasWorked(session: Session): boolean {
  let ended = 0;
  const idle = new Set<string>();
  for (const event of session.events()) {
    if (event.type === "call.proposed" && isIdle(event.tool, event.args)) idle.add(keyOf(event));
    if (event.type !== "call.ended") continue;
    if (event.kind === "ok" && !idle.has(keyOf(event))) return true;
    ended += 1;
  }
  return ended === 0 && session.records().some(isDeed);
}

const keyOf = ({ run, agent, call }: Pick<AgentEvent, "run" | "agent"> & { readonly call: string }): string =>
  JSON.stringify([run, agent, call]);

const GOES_ON = /^\s*(?:please )?(?:go on|continue|carry on|keep going|proceed)(?: with the task)?\W*$/i;

/**
 * Whether the words ask for no change of their own ("go on", "and now?"): then they belong to the session's earlier
 * task.
 */
export const onlyContinues = ({ resumed, prompt, flags }: PersonRequest): boolean =>
  resumed &&
  flags.intent === undefined &&
  (GOES_ON.test(prompt) || guessIntent(prompt, "read-only") !== "change");

/**
 * Whether the words only ask to run something, or only to look. Not guessed if `--intent` or candidates say what is
 * wanted.
 */
export function onlyWanted({
  prompt,
  flags,
  parkedRun,
}: Pick<PersonRequest, "prompt" | "flags" | "parkedRun">): "run" | "look" | undefined {
  if (flags.intent !== undefined || flags.candidate !== undefined) return undefined;
  const request = parkedRun?.parked.given.task ?? prompt;
  if (asksToRun(request)) return "run";
  return asksToLook(request) ? "look" : undefined;
}

/** The named check, otherwise the project's own tests, if a change is asked for and may be made. */
export async function verificationFor(
  personRequest: PersonRequest,
  remedy?: () => Promise<string | undefined>,
): Promise<Verification | null> {
  const { settings, flags, prompt, session, parkedRun, replayed } = personRequest;
  const { check, timeout } = settings;
  if (flags["no-verify"] === true) return null;
  const request = parkedRun?.parked.given.task ?? prompt;
  const found =
    check === null
      ? await ownCheck(personRequest)
      : ({ command: check, by: replayed === undefined ? "user" : "record" } as const);
  if (found === undefined) return null;
  const strict = flags.strict || flags.candidate !== undefined;
  const options = { request, strict, ...(remedy === undefined ? {} : { remedy }) };
  const verification = new Verification(found, timeout, options);
  if (parkedRun !== undefined)
    for (const event of session.events())
      if (event.type === "check.ended" && event.command === found.command) verification.resume(event);
  return verification;
}

async function ownCheck(personRequest: PersonRequest): Promise<Check | undefined> {
  const { settings, flags, prompt, parkedRun } = personRequest;
  const intent = parkedRun?.parked.intent ?? flags.intent ?? guessIntent(prompt, settings.mode);
  const isTask = onlyWanted(personRequest) === undefined;
  if (intent !== "change" || settings.mode === "read-only" || !isTask) return undefined;
  const command = await ownTests(personRequest);
  return command === undefined ? undefined : { command, by: "project" };
}

const isWeak = async (personRequest: PersonRequest): Promise<boolean> =>
  requestedModel(personRequest).isWeak((await personRequest.model?.capabilities)?.parameters);

/** A script that is a test only by name is run only for weak models, because their own claims are unreliable. */
async function ownTests(personRequest: PersonRequest): Promise<string | undefined> {
  const { projectCheck } = await import("./project-check.ts");
  return projectCheck(personRequest.workspace, { scripts: await isWeak(personRequest) });
}

/** Tells a small model how to run the tests; without this, it may mistake a CI workflow for them. */
export async function testsNote(personRequest: PersonRequest): Promise<string> {
  if (
    onlyWanted(personRequest) !== "run" ||
    !/\b(?:tests?|suite)\b/i.test(personRequest.prompt) ||
    !(await isWeak(personRequest))
  )
    return "";
  const command = await ownTests(personRequest);
  return command === undefined
    ? ""
    : `\n\n${NOTICE}The project's own tests are run by: ${visibleLine(command)}`;
}

/** Parsed on the host, because the box may have no YAML parser. No objects are built, and no tags are obeyed. */
export async function yamlError(text: string): Promise<string | undefined> {
  const { parseAllDocuments } = await import("yaml");
  // Checking for unique keys is quadratic.
  const documents = parseAllDocuments(text, { logLevel: "silent", prettyErrors: true, uniqueKeys: false });
  const [error] = "empty" in documents ? documents.errors : documents.flatMap(({ errors }) => errors);
  return error?.message.split("\n", 1)[0];
}

const MODE_TEXT: Readonly<Record<Mode, string>> = {
  "read-only": "nothing can be changed any more",
  "workspace-write": "you can write below the workspace and in /tmp",
  "danger-full-access": "you can write everywhere in the container, and reach the network",
};

const NOTE = /\n\n\[harness\] The mode is (read-only|workspace-write|danger-full-access) now: [^\n]*$/;

/**
 * The note on the mode to add to a request, or nothing. The system prompt states the mode at the start and stays as it
 * is. A note that was taken back or left out since is repeated.
 */
export function modeNote(seen: readonly Message[], atStart: Mode, mode: Mode): string {
  const note = seen.findLast(({ role, text }) => role === "user" && NOTE.test(text));
  const known = NOTE.exec(note?.text ?? "")?.[1] ?? atStart;
  if (known === mode) return "";
  return `\n\n[harness] The mode is ${mode} now: ${MODE_TEXT[mode]}. The box is a new one: what was outside of the workspace is gone.`;
}

const NETWORK_NOTE = /\n\n\[harness\] The network from now on: ([^\n]*)$/m;

/** The note on the network: `pinned` is the system prompt, `network` what it would say now. */
export function networkNote(seen: readonly Message[], pinned: string, network: string): string {
  const note = seen.findLast(({ role, text }) => role === "user" && NETWORK_NOTE.test(text));
  const known =
    note === undefined
      ? `${pinned}\n`.includes(`\nNetwork: ${network}\n`)
      : NETWORK_NOTE.exec(note.text)?.[1] === network;
  return known ? "" : `\n\n[harness] The network from now on: ${network}`;
}

const BOX_NOTE = /\n\n\[harness\] (?:The mode is [^\n]*)?The box is a new one: [^\n]*/;

/** `since`: the number of messages when their box was closed; undefined if no box was closed. */
export function boxNote(messages: readonly Message[], since: number | undefined): string {
  const isTold = since === undefined || messages.slice(since).some(({ text }) => BOX_NOTE.test(text));
  return isTold ? "" : "\n\n[harness] The box is a new one: what was outside of the workspace is gone.";
}

/** Changes of a session that a person has undone or redone. */
export interface UndoneStep {
  readonly step: number;
  readonly kind: "undo" | "redo";
  /** Empty if the paths are unknown. */
  readonly paths: readonly string[];
}

const UNDO_NOTE = /\n\n\[harness\] (?:Undone|Redone) \(step (\d+)\): [^\n]*/g;
const MAX_PATHS = 20;

/** The note on undone changes; a model that has called nothing needs none. */
export function undoNote(messages: readonly Message[], taken: readonly UndoneStep[]): string {
  if (!messages.some(({ role }) => role === "tool")) return "";
  const steps = messages
    .filter(({ role }) => role === "user")
    .flatMap(({ text }) => [...text.matchAll(UNDO_NOTE)].map(([, step]) => Number(step)));
  return taken
    .filter(({ step }) => step > Math.max(0, ...steps))
    .map(({ step, kind, paths }) => {
      const what = paths.length === 0 ? "some of what you changed" : `what you changed in ${named(paths)}`;
      return kind === "undo"
        ? `\n\n[harness] Undone (step ${step}): the person has taken back ${what}. Go by what is in the folder now, and do not do it again unless they ask for it.`
        : `\n\n[harness] Redone (step ${step}): the person has brought back ${what}.`;
    })
    .join("");
}

const named = (paths: readonly string[]): string => firstOf(paths, MAX_PATHS, (path) => JSON.stringify(path));

/** The note on a lost background task. */
const LOST_NOTE = /\n\n\[harness\] t\d+ \([^\n]*\) is lost: [^\n]*/g;

const NAMED_NOTE = /\n\n\[harness\] With @ it names, in the workspace: [^\n]*/;

/** The note on files that a person names in a request; the model itself calls a tool to read them. */
export const namedNote = (files: readonly string[]): string =>
  files.length === 0
    ? ""
    : `\n\n[harness] With @ it names, in the workspace: ${files.map((file) => JSON.stringify(file)).join(", ")}`;

/** The text that the person typed, without notes. */
export const typedText = (text: string): string =>
  [UNDO_NOTE, BOX_NOTE, NOTE, NETWORK_NOTE, LOST_NOTE, NAMED_NOTE].reduce(
    (typed, note) => typed.replace(note, ""),
    text,
  );

/** Whether a person typed the message; otherwise the loop added it on their behalf. */
export const isTyped = ({ role, text }: Message): boolean =>
  role === "user" && !text.startsWith("[harness] ");
