import { checkNetwork } from "../../app/boxes/granted-network.ts";
import type { Host } from "../../app/host.ts";
import { untilInterrupted } from "../../app/interruption.ts";
import { askForTrust, readUntrusted, untrustedOf } from "../../app/project/project-trust.ts";
import { ChatController } from "../../app/run/chat-controller.ts";
import { namedNote } from "../../app/run/person-request.ts";
import { LastingRules } from "../../app/run/prompter.ts";
import { ChatNotice, desktopNotice, isWatched } from "../../app/run/run-observers.ts";
import { sessionsWorkspace } from "../../app/sessions/session-access.ts";
import type { ModelFlags } from "../../app/sessions/last-run.ts";
import type { TakenUp } from "../../app/sessions/session-hold.ts";
import { noteTo } from "../../app/stderr-messages.ts";
import type { Config } from "../../config/load-config.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { EXIT, type ExitCode, HarnessError, type Signal, type Health } from "../../core/errors.ts";
import { maskSecrets } from "../../core/secrets.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import { visible } from "../../core/visible.ts";
import { itemText } from "../../render/repository-lines.ts";
import { healthTable } from "../../render/setup-lines.ts";
import { fitToWidth, widthOfStream, wrapped } from "../../render/tty/columns.ts";
import { ProgressLine, systemClock } from "../../render/tty/live-lines.ts";
import { move, type Output, stderr, stdout, styleText } from "../../render/tty/output.ts";
import { configContinued, configFor, workspaceOf } from "../settings.ts";
import { choose, confirm } from "../terminal.ts";
import { COMMANDS, completed, namesOf, type SlashName } from "./chat-commands.ts";
import { ChatLines, fileCompletion, SlashValues, type TypedTexts } from "./chat-lines.ts";
import {
  type ChatFacts,
  type ChatScreen,
  person,
  plainScreen,
  recalled,
  requestsIn,
  type ScreenParts,
  sessionYes,
} from "./chat-screen.ts";

export interface ChatFlags {
  readonly quiet: boolean;
  readonly json: boolean;
  readonly cwd?: string | undefined;
  readonly runtime?: string | undefined;
}

/** An earlier session to continue: a named one, or the last one of the folder. */
export type Earlier = { readonly id: string | undefined; readonly fork: boolean } | undefined;

/** Runs a chat until the person leaves; returns its exit code. */
export async function startChat(host: Host, flags: ChatFlags, earlier?: Earlier): Promise<number> {
  const stores = storeOnce(host, noteTo(flags.quiet));
  try {
    const started = earlier === undefined ? undefined : await earlierIn(await stores.open(), earlier, flags);
    const found = started?.session;
    const here = await sessionsWorkspace(workspaceOf({ cwd: flags.cwd }));
    const workspace = found === undefined || flags.cwd !== undefined ? here : found.info().workspace;
    await askOfProject(host, workspace, flags.quiet);
    const taken = started === undefined ? undefined : await takenUpAgain(host, started, flags);
    if (taken?.note !== undefined) noteTo(flags.quiet)(taken.note);
    const { settings, origins } = await configContinued({ ...flags, cwd: workspace }, taken?.overrides);
    checkNetwork(host, settings);
    return await converse({
      host: taken?.host ?? host,
      settings,
      origins,
      flags,
      workspace,
      stores,
      found,
    });
  } finally {
    await stores.close();
  }
}

/**
 * Asks once about things that would count for more if they were trusted; after a no, they are only mentioned until they
 * change.
 */
async function askOfProject(host: Host, workspace: string, quiet: boolean): Promise<void> {
  const seen = await readUntrusted(host, workspace);
  const fresh = seen.shown.items.filter(
    ({ told: isReported, waits, declined }) => isReported && waits && !declined,
  );
  if (fresh.length > 0) {
    await askForTrust(host, seen, fresh, {
      show: (item) => stderr.write(itemText(item, stderr)),
      confirm: (question) => confirm(question, false),
    });
    return;
  }
  const untrusted = untrustedOf(seen.shown);
  if (untrusted !== undefined) noteTo(quiet)(untrusted.text);
}

interface ChatStart {
  readonly host: Host;
  readonly settings: Settings;
  readonly origins: Config["origins"];
  readonly flags: ChatFlags;
  readonly workspace: string;
  readonly stores: ReturnType<typeof storeOnce>;
  readonly found: Session | undefined;
}

async function converse(start: ChatStart): Promise<number> {
  const { host, settings, origins, flags, workspace, stores, found } = start;
  const [output, errors] = [stdout, stderr];
  const presses = { since: 0 };
  const cancel = (): boolean => chat.cancel("SIGINT");
  const lasting = new LastingRules(host, workspace);
  const added: SlashName[] = [];
  const started: { chat?: ChatController } = {};
  const shown = { failure: "" };
  const notice = noticeOf(start, () => started.chat);
  const facts = factsFrom(settings, workspace, () => screen.end());
  using screen = await openScreen(host, {
    quiet: flags.quiet,
    onInterrupt: () => {
      if (!chat.busy) return false;
      presses.since = cancel() ? 0 : presses.since + 1;
      if (presses.since === 1) noteTo(false)("stopping; press Ctrl-C again to leave at once");
      if (presses.since > 1) process.exit(EXIT.interrupted);
      return true;
    },
    cancel: () => void cancel(),
    rulesFor: lasting.shown,
    complete: (line) => completed(line, [...COMMANDS, ...added], values.of(added)),
    files: fileCompletion(async (text, signal) =>
      (await import("../../app/project/file-mentions.ts")).fileCandidates(host, workspace, text, signal),
    ),
    facts: () => facts(started.chat),
  });
  await using chat = new ChatController({
    host,
    settings,
    origins,
    workspace,
    runtime: flags.runtime ?? null,
    store: stores.open,
    view: {
      take: (event) => {
        screen.take(event);
        notice.take(event);
        if (event.type === "model.failed" && !flags.quiet) shown.failure = event.reason;
      },
      end: screen.end,
    },
    approver: person({
      ask: (question, signal) => notice.askWithNotice(() => screen.ask(question, signal)),
      cancel,
      ...sessionYes(() => chat.conversation?.session, lasting, flags.quiet),
    }),
    person: (question, signal) => notice.askWithNotice(() => screen.askInWords(question, signal)),
    warn: noteTo(flags.quiet),
  });
  const values = new SlashValues(chat);
  started.chat = chat;
  using leaving = leavingBy((signal) => {
    if (signal !== "SIGTERM") screen.close();
    chat.cancel(signal);
    screen.leave();
  });
  using _ = onSignals({ SIGINT: () => screen.interrupt(), SIGCONT: () => screen.resume() });
  errors.write(banner(settings, workspace, errors));
  const typed = await typedTexts(start);
  screen.remember(typed.with([]));
  if (found !== undefined) {
    const { messages } = (await chat.resume(found)).memory.history;
    errors.write(recalled(messages, errors));
    screen.remember(typed.with(requestsIn(messages)));
  }
  const { all, note } = await chat.commands();
  added.push(...namesOf(all));
  if (note !== "") noteTo(flags.quiet)(visible(note));
  setImmediate(() => void chat.ahead());
  const over = (): boolean => leaving.code() !== undefined;
  await new ChatLines({ chat, screen, typed, output, errors, failure: () => shown.failure, over }).run();
  const left = leaving.code();
  if (left === undefined && chat.conversation !== undefined)
    errors.write(
      styleText("dim", `to continue: harness resume ${chat.conversation.session.id}\n`, { stream: errors }),
    );
  return left ?? EXIT.done;
}

function noticeOf(
  { settings, workspace, flags }: ChatStart,
  chat: () => ChatController | undefined,
): ChatNotice {
  if (!isWatched(flags, stderr, process.env["CI"])) return new ChatNotice(undefined);
  return new ChatNotice({
    clock: systemClock,
    notify: () => (chat()?.settings ?? settings).notify,
    title: () => maskSecrets(chat()?.conversation?.session.info().title ?? "chat"),
    ring: () => stderr.writeNow(move("bell")),
    desktop: (text) => void desktopNotice(text, process.env, workspace).catch(() => undefined),
  });
}

/** The current facts: commands can change them. A model's window is looked up when it is first needed. */
function factsFrom(
  settings: Settings,
  workspace: string,
  known: () => void,
): (chat: ChatController | undefined) => ChatFacts {
  const windows = new Map<string, number | undefined>();
  const find = async (chat: ChatController, model: string): Promise<void> => {
    windows.set(model, undefined);
    const client = await chat.model();
    windows.set(model, (await client.capabilities(model, AbortSignal.timeout(PATIENCE_MS))).context);
    known();
  };
  return (chat) => {
    const { chat_model: model, mode } = chat?.settings ?? settings;
    if (chat?.conversation !== undefined && !windows.has(model))
      void find(chat, model).catch(() => undefined);
    return { model, mode, window: windows.get(model), hasBox: chat?.hasBox ?? false, workspace };
  };
}

const PATIENCE_MS = 5000;

/** Texts typed in this folder; a failure to keep them is reported once. */
async function typedTexts({ host, settings, workspace, flags }: ChatStart): Promise<TypedTexts> {
  const { typedHistory } = await import("../../app/sessions/typed-history.ts");
  const history = typedHistory({ stateDir: host.places.state, workspace });
  const failures = new Set<string>();
  return {
    keep: async (text) => {
      const failure = settings.history ? await history.keep(text) : undefined;
      if (failure === undefined || failures.size > 0) return;
      failures.add(failure);
      noteTo(flags.quiet)(`what you type is not kept for later chats: ${visible(failure)}`);
    },
    with: (texts) =>
      [...new Set([...(settings.history ? history.read() : []), ...texts].toReversed())].toReversed(),
    named: async (text) => {
      if (!text.includes("@")) return "";
      const { filesNamedIn } = await import("../../app/project/file-mentions.ts");
      return namedNote(await filesNamedIn(host, workspace, text));
    },
  };
}

/** A drawn screen if the terminal allows; otherwise, or if requested, lines. */
async function openScreen({ env }: Host, parts: ScreenParts): Promise<ChatScreen> {
  const isDumb = /^(?:dumb|unknown|)$/.test(env["TERM"] ?? "");
  const isSmall = (stdout.rows ?? 0) < MIN_ROWS || (stdout.columns ?? 0) < MIN_COLUMNS;
  if (parts.quiet || stdout.plain || isDumb || isSmall || env["HARNESS_CHAT"] === "lines")
    return plainScreen(parts);
  const { TuiScreen } = await import("./tui-screen.ts");
  return new TuiScreen(parts);
}

const MIN_ROWS = 12;
const MIN_COLUMNS = 30;

function banner({ chat_model, provider, mode }: Settings, workspace: string, stream: Output): string {
  const width = widthOfStream(stream);
  const model = `${chat_model} (${provider})  ${mode}`;
  const whole = `${model}  ${workspace}`;
  const facts = whole.length < width ? [whole] : [model, workspace];
  const lines = [...facts, "/help lists commands, Ctrl-D leaves"];
  return lines.map((line) => `${styleText("dim", fitToWidth(line, width), { stream })}\n`).join("");
}

/** Opens the store on first use: a chat in which nothing is said leaves no trace. */
function storeOnce(host: Host, warn: (text: string) => void) {
  const opened: { store?: Promise<SessionStore> } = {};
  const open = async (): Promise<SessionStore> => {
    const { clearPassingLeftovers, openSessions } = await import("../../app/sessions/session-access.ts");
    await clearPassingLeftovers(host);
    return openSessions(host, warn);
  };
  return {
    open: (): Promise<SessionStore> => (opened.store ??= open()),
    close: async (): Promise<void> => (await opened.store?.catch(() => undefined))?.[Symbol.dispose](),
  };
}

async function takenUpAgain(
  host: Host,
  { session, from }: Awaited<ReturnType<typeof earlierIn>>,
  flags: ChatFlags & ModelFlags,
): Promise<TakenUp> {
  const { hostForSession } = await import("../../app/sessions/session-hold.ts");
  return hostForSession(host, from, { ...flags, fork: session.id !== from.id });
}

async function earlierIn(store: SessionStore, earlier: NonNullable<Earlier>, { cwd }: ChatFlags) {
  const { earlierSession } = await import("../../app/sessions/session-access.ts");
  const choice = { continue: earlier.id === undefined, resume: earlier.id };
  const from = earlierSession(store, choice, await sessionsWorkspace(workspaceOf({ cwd })));
  if (from === undefined) throw new HarnessError(EXIT.usage, "there is no session to continue", "harness");
  return { from, session: earlier.fork ? store.fork(from.id) : from };
}

function onSignals(handlers: Readonly<Partial<Record<NodeJS.Signals, () => void>>>): Disposable {
  const entries = Object.entries(handlers);
  for (const [name, handler] of entries) process.on(name, handler);
  return {
    [Symbol.dispose]: () => {
      for (const [name, handler] of entries) process.removeListener(name, handler);
    },
  };
}

const CODES = { SIGTERM: EXIT.terminated, SIGHUP: EXIT.hangup } as const;

interface Leaving extends Disposable {
  /** The exit code; undefined until something ends the chat. */
  readonly code: () => ExitCode | undefined;
}

/** SIGTERM, SIGHUP, and a terminal that is gone end the chat in order; a second signal ends it at once. */
function leavingBy(leave: (signal: Signal) => void): Leaving {
  const ended: { code?: ExitCode } = {};
  const by = (signal: Signal, code: ExitCode) => (): void => {
    if (ended.code !== undefined && signal !== "reader-left") process.exit(code);
    if (ended.code !== undefined) return;
    ended.code = code;
    leave(signal);
  };
  const handlers = (["SIGTERM", "SIGHUP"] as const).map((name) => {
    const handler = by(name, CODES[name]);
    process.on(name, handler);
    return (): void => void process.removeListener(name, handler);
  });
  const gone = by("reader-left", EXIT.hangup);
  handlers.push(stdout.on("reader-left", gone));
  return {
    code: () => ended.code,
    [Symbol.dispose]: () => {
      for (const remove of handlers) remove();
    },
  };
}

/**
 * For a user who starts a chat without ever having chosen a model: shows what a run needs of this machine, and offers
 * to mend what is missing. The chat begins in any case.
 */
export async function welcome(
  host: Host,
  flags: Readonly<Record<string, unknown>> & { readonly quiet: boolean },
): Promise<void> {
  const config = await configFor(flags);
  if (flags.quiet || isChosen(config)) return;
  const { firstChecks, modelChecks } = await import("../../app/checkup.ts");
  const { isWelcomed, noteWelcome } = await import("../../app/first-run.ts");
  if (isWelcomed(host) && !hasFailed(await modelChecks(host, config.settings), "model")) return;
  await untilInterrupted(async (signal) => {
    stderr.write(headline(stderr));
    const checks = await runChecks(() => firstChecks(host, config.settings));
    stderr.write(`${healthTable(checks, stderr)}\n`);
    if (hasFailed(checks, "image")) await offerImage(host, signal);
    if (hasFailed(checks, "model")) await offerModel(host, signal);
  }, "harness doctor");
  await noteWelcome(host);
}

const KEYS = ["provider", "chat_model", "base_url"] as const;

const isChosen = ({ origins }: Config): boolean =>
  KEYS.some((key) => (origins[key] ?? "default") !== "default");

const hasFailed = (checks: readonly Health[], what: string): boolean =>
  checks.some(({ id, state }) => state === "fail" && (id === what || id.startsWith(`${what}.`)));

const headline = (stream: Output): string =>
  `${styleText("bold", "Welcome to harness.", { stream })} No model is chosen yet. What harness found on this machine:\n\n`;

async function runChecks(look: () => Promise<readonly Health[]>): Promise<readonly Health[]> {
  using _ = new ProgressLine(stderr, { what: "looking", quiet: false, endIsReported: true });
  return await look();
}

async function offerImage(host: Host, signal: AbortSignal): Promise<void> {
  const question = "The sandbox image is not built. Build it now? It takes some minutes, once.";
  if (!(await confirm(question, false, signal))) return;
  const { buildImage } = await import("../../app/boxes/own-boxes.ts");
  using progress = new ProgressLine(stderr, { what: "sandbox image", quiet: false });
  await orReport(async () => (await buildImage(host, { rebuild: false, onLine: progress.line }))(signal));
}

/** Offers a model as `harness init` does. */
async function offerModel(host: Host, signal: AbortSignal): Promise<void> {
  const run = await import("../../app/first-run.ts");
  await orReport(async () => {
    const own = await run.ownSettings(host);
    const answers = await run.askPlaces(run.serverPlaces(host, own), signal);
    const offers = run.wantedOffers(run.rankedOffers(answers, own), answers, undefined);
    const rows = offers.map((offer) => run.rowOf(offer));
    const at = await choose("These chat models are on this machine:", rows, { yes: false, signal });
    const chosen = at === null ? undefined : offers[at];
    if (chosen === undefined) return;
    const [file] = host.places.configFiles;
    const changes = run.changesFor(chosen, own);
    const lines = changes.map(({ key, value }) => `  ${key} = ${value}`);
    stderr.write(visible(`To be written to ${file}:\n${lines.join("\n")}\n`));
    if (await confirm("Write this?", false, signal)) await run.writeChanges(file, changes);
  });
}

/** Reports a failure with what to type next, without keeping the person from the chat. */
async function orReport(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (thrown) {
    if (!(thrown instanceof HarnessError)) throw thrown;
    const text = [...wrapped(thrown.message, widthOfStream(stderr) - 1), `  next: ${visible(thrown.remedy)}`];
    stderr.write(`${text.join("\n")}\n\n`);
  }
}
