import { checkNetwork } from "../app/granted-network.ts";
import type { Host } from "../app/host.ts";
import { describeFailure, renderFailure, noteTo } from "../app/stderr-messages.ts";
import { sessionsWorkspace } from "../app/session-access.ts";
import { askForTrust, seenUntrusted, untrustedOf } from "../app/project-trust.ts";
import type { Config } from "../config/load-config.ts";
import type { Settings } from "../config/settings-schema.ts";
import { MODES } from "../core/decision.ts";
import { EXIT, type ExitCode, HarnessError, type Signal } from "../core/errors.ts";
import type { Answer, Approver, Question } from "../core/ports.ts";
import { isSameQuestion, type Session, type SessionStore, settledIn } from "../core/session.ts";
import { visible } from "../core/visible.ts";
import { fitted, widthOfStream, wrapped } from "../render/tty/columns.ts";
import { isStyled, type Output, stderr, stdout, styleText } from "../render/tty/output.ts";
import { itemText } from "../render/tty/trust-lines.ts";
import { inTurn, personOn } from "./asked-person.ts";
import { configFor, workspaceOf } from "./settings.ts";
import { COMMANDS, completed, namesOf, slashOf, type SlashName } from "./chat-commands.ts";
import { LastingRules } from "../app/run/lasting-rules.ts";
import { ChatController } from "../app/run/chat-controller.ts";
import { besides, closing, ChatView, HandoffNotes, recalled, requestsIn } from "./chat-view.ts";
import { confirm } from "./terminal.ts";
import { questionsOn } from "./approval-question.ts";
import { Keyboard, Prompt } from "./terminal-input.ts";
import { type Reply, settledByMode } from "../app/prompter.ts";

export interface ChatFlags {
  readonly quiet: boolean;
  readonly json: boolean;
  readonly cwd?: string | undefined;
  readonly runtime?: string | undefined;
}

/** An earlier session to go on with: named, or the last one of the folder. */
export type Earlier = { readonly id: string | undefined; readonly fork: boolean } | undefined;

/** A chat until a person leaves it; its exit code. */
export async function startChat(host: Host, flags: ChatFlags, earlier?: Earlier): Promise<number> {
  const stores = storeOnce(host, noteTo(flags.quiet));
  try {
    const found = earlier === undefined ? undefined : await earlierIn(await stores.open(), earlier, flags);
    const given = await sessionsWorkspace(workspaceOf({ cwd: flags.cwd }));
    const workspace = found === undefined || flags.cwd !== undefined ? given : found.info().workspace;
    await askOfProject(host, workspace, flags.quiet);
    const { settings, origins } = await configFor({ ...flags, cwd: workspace });
    checkNetwork(host, settings);
    return await converse({ host, settings, origins, flags, workspace, stores, found });
  } finally {
    await stores.close();
  }
}

/** What would count for more if it was trusted is asked once; said no to, it is only told of until it changes. */
async function askOfProject(host: Host, workspace: string, quiet: boolean): Promise<void> {
  const seen = await seenUntrusted(host, workspace);
  const fresh = seen.told.items.filter(({ told, waits, declined }) => told && waits && !declined);
  if (fresh.length > 0) {
    await askForTrust(host, seen, fresh, {
      show: (item) => stderr.write(itemText(item, stderr)),
      confirm: (question) => confirm(question, false),
    });
    return;
  }
  const untrusted = untrustedOf(seen.told);
  if (untrusted !== undefined) noteTo(quiet)(untrusted.text);
}

interface ChatStart {
  readonly host: Host;
  readonly settings: Settings;
  readonly origins: Config["origins"];
  readonly flags: ChatFlags;
  readonly workspace: string;
  readonly stores: ReturnType<typeof storeOnce>;
  readonly found: Awaited<ReturnType<typeof earlierIn>> | undefined;
}

async function converse(start: ChatStart): Promise<number> {
  const { host, settings, origins, flags, workspace, stores, found } = start;
  const [output, errors] = [stdout, stderr];
  const view = new ChatView(output, errors, flags.quiet);
  const cancel = (): boolean => chat.cancel("SIGINT");
  const presses = { since: 0 };
  using keyboard = new Keyboard({
    input: process.stdin,
    write: (text) => output.write(text),
    onInterrupt: () => {
      if (!chat.busy) return false;
      presses.since = cancel() ? 0 : presses.since + 1;
      if (presses.since === 1) noteTo(false)("it is being ended; Ctrl-C once more leaves at once");
      if (presses.since > 1) process.exit(EXIT.interrupted);
      return true;
    },
    suspend: () => process.kill(process.pid, "SIGTSTP"),
  });
  const terminal = { keyboard, output, pause: () => view.pause() };
  const turns = inTurn();
  const lasting = new LastingRules(host, workspace);
  const question = questionsOn({ ...terminal, rulesFor: lasting.shown, edits: true });
  const ask: Asking["ask"] = (asked, signal) => turns(() => question(asked, signal));
  const words = personOn({ ...terminal, cancel });
  await using chat = new ChatController({
    host,
    settings,
    origins,
    workspace,
    runtime: flags.runtime ?? null,
    store: stores.open,
    view,
    approver: person({
      ask,
      cancel,
      ...sessionYes(() => chat.conversation?.session, lasting, flags.quiet),
    }),
    person: (asked, signal) => turns(() => words(asked, signal)),
    warn: noteTo(flags.quiet),
  });
  using leaving = leavingBy((signal) => {
    if (signal !== "SIGTERM") view.close();
    chat.cancel(signal);
    keyboard.end();
  });
  const added: SlashName[] = [];
  const prompt = new Prompt(keyboard, output, (line) =>
    completed(line, [...COMMANDS, ...added], { mode: MODES }),
  );
  using _ = onSignals({
    SIGINT: () => keyboard.interrupt(),
    SIGCONT: () => {
      keyboard.resume();
      prompt.redraw();
    },
  });
  errors.write(banner(settings, workspace, errors));
  if (found !== undefined) {
    const { messages } = (await chat.resume(found)).memory.history;
    errors.write(recalled(messages, errors));
    prompt.remember(requestsIn(messages));
  }
  const { all, note } = await chat.commands();
  added.push(...namesOf(all));
  if (note !== "") noteTo(flags.quiet)(visible(note));
  setImmediate(() => void chat.ahead());
  const over = (): boolean => leaving.code() !== undefined;
  await new Chat({ chat, prompt, output, errors, over }).run();
  const left = leaving.code();
  if (left === undefined && chat.conversation !== undefined)
    errors.write(
      styleText("dim", `to go on: harness resume ${chat.conversation.session.id}\n`, { stream: errors }),
    );
  return left ?? EXIT.done;
}

function banner({ chat_model, provider, mode }: Settings, workspace: string, stream: Output): string {
  const width = widthOfStream(stream);
  const lines = [`${chat_model} (${provider})  ${mode}  ${workspace}`, "/help lists commands, Ctrl-D leaves"];
  return lines.map((line) => `${styleText("dim", fitted(line, width), { stream })}\n`).join("");
}

/** Opened when it is first wanted: a chat in which nothing is said leaves no trace. */
function storeOnce(host: Host, warn: (text: string) => void) {
  const held: { store?: Promise<SessionStore> } = {};
  const open = async (): Promise<SessionStore> =>
    (await import("../app/session-access.ts")).openSessions(host, warn);
  return {
    open: (): Promise<SessionStore> => (held.store ??= open()),
    close: async (): Promise<void> => (await held.store?.catch(() => undefined))?.[Symbol.dispose](),
  };
}

async function earlierIn(store: SessionStore, earlier: NonNullable<Earlier>, { cwd }: ChatFlags) {
  const { earlierSession } = await import("../app/session-access.ts");
  const choice = { continue: earlier.id === undefined, resume: earlier.id, fork: earlier.fork };
  const found = earlierSession(store, choice, await sessionsWorkspace(workspaceOf({ cwd })));
  if (found === undefined) throw new HarnessError(EXIT.usage, "no session to go on with", "harness");
  return found;
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

interface ChatParts {
  readonly chat: ChatController;
  readonly prompt: Prompt;
  readonly output: Output;
  readonly errors: Output;
  /** Somebody has ended it from outside. */
  readonly over: () => boolean;
}

/** Tables keep their columns as long as there is room for them. */
function fittedLines(text: string, stream: Output): string {
  const width = widthOfStream(stream);
  const fits = (line: string): boolean => line.length < width || isStyled(line);
  return text
    .split("\n")
    .flatMap((line) => (fits(line) ? line : wrapped(line, width - 1)))
    .join("\n");
}

/** Line after line of a person, until they leave. */
class Chat {
  readonly #parts: ChatParts;
  /** Ctrl-C at an empty prompt: the first one says how to leave. */
  #warned = false;
  /** A request that nothing came of is offered again. */
  readonly #handed = new HandoffNotes();
  #initial = "";

  constructor(parts: ChatParts) {
    this.#parts = parts;
  }

  async run(): Promise<void> {
    const { prompt, over } = this.#parts;
    while (!over()) {
      const line = await prompt.ask(this.#initial);
      this.#initial = "";
      if (line.kind === "end") return;
      if (line.kind === "interrupt") {
        if (line.empty && this.#warned) return;
        if (line.empty) this.#tell("Ctrl-D or exit leaves");
        this.#warned = line.empty;
        continue;
      }
      this.#warned = false;
      if ((await this.#take(line.text)) === "leave") return;
    }
  }

  async #take(text: string): Promise<"leave" | undefined> {
    if (text.trim() === "") return undefined;
    const slash = slashOf(text, COMMANDS);
    if (slash.kind === "leave") return "leave";
    if (slash.kind === "command") await this.#command(slash.name, slash.argument);
    else if (text.trimStart().startsWith("/") && (await this.#added(text))) return undefined;
    else if (slash.kind === "unknown")
      this.#tell(
        `there is no /${visible(slash.name)}${slash.near === undefined ? "; /help lists what there is" : `; did you mean /${slash.near}?`}`,
      );
    else await this.#request(text);
    return undefined;
  }

  /** What users added goes the way of every request; false where the line names nothing of it. */
  async #added(text: string): Promise<boolean> {
    const held: { found?: Awaited<ReturnType<ChatController["expansion"]>> } = {};
    await this.#orSay(async () => {
      held.found = await this.#parts.chat.expansion(text);
    });
    const { found } = held;
    if (found === undefined) return true;
    if (typeof found === "string") {
      if (found !== "") this.#tell(visible(found));
      return false;
    }
    this.#tell(visible(found.note));
    await this.#request(found.said, text);
    return true;
  }

  async #command(name: string, argument: string): Promise<void> {
    const { chat, prompt, output } = this.#parts;
    const before = chat.conversation;
    await this.#orSay(async () => {
      const command = COMMANDS.find((each) => each.name === name);
      const text = (await command?.run(chat, argument, output)) ?? "";
      if (text !== "") output.write(`${fittedLines(text, output)}\n`);
    });
    if (chat.conversation !== before && chat.conversation !== undefined)
      prompt.remember(requestsIn(chat.conversation.memory.history.messages));
  }

  async #request(text: string, typed = text): Promise<void> {
    const { chat, errors, over } = this.#parts;
    const count = (): number => chat.conversation?.memory.history.count ?? 0;
    const before = count();
    await this.#orSay(async () => {
      const finished = await chat.request(text);
      // Told to the last: what was moved away is not found again by whoever was not told.
      errors.write(besides(finished, errors));
      if (!over()) errors.write(closing(finished, errors) + this.#handed.lines(finished.handoff, errors));
    });
    if (!over()) errors.write("\n");
    if (count() <= before) this.#initial = typed;
  }

  /** Nothing that goes wrong with one line ends the chat. */
  async #orSay(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      if (!this.#parts.over()) renderFailure(describeFailure(thrown, []), false);
    }
  }

  #tell(text: string): void {
    this.#parts.errors.write(`${styleText("dim", text, { stream: this.#parts.errors })}\n`);
  }
}

export interface Asking {
  /** Shows the question and waits for the keys of a person. */
  readonly ask: (question: Question, signal: AbortSignal) => Promise<Reply>;
  /** A person who interrupts the question ends the request. */
  readonly cancel: () => void;
  /** What was said yes to for this session. */
  readonly settled: () => readonly Question[];
  /** Writes a yes down that holds for longer than a call. */
  readonly keep: (question: Question, term: "session" | "always") => Promise<void>;
}

/** What a yes that holds for longer than a call is written into. */
function sessionYes(
  session: () => Session | undefined,
  lasting: LastingRules,
  quiet: boolean,
): Pick<Asking, "settled" | "keep"> {
  return {
    settled: () => settledIn(session()?.records() ?? []),
    keep: async (question, term) => {
      session()?.append({ kind: "answered", question, word: term });
      if (term === "session") return;
      const written = await lasting.write(question);
      if (written.kind === "written") noteTo(quiet)(`allowed from now on by ${written.file}`);
      else noteTo(false)(`no rule was written: ${written.reason}; it is a yes for this session`);
    },
  };
}

export interface Person extends Approver {
  ask(question: Question, signal: AbortSignal): Promise<Answer>;
}

/** A person at the terminal, who is asked one thing at a time, and the same thing once where they said so. */
export function person({ ask, cancel, settled, keep }: Asking): Person {
  let last: Promise<unknown> = Promise.resolve();
  const answered = async (question: Question, reply: Reply): Promise<Answer> => {
    if (typeof reply === "object")
      return "no" in reply ? { ...NO, word: reply.no } : { ...NO, edited: reply.edited };
    if (reply === "interrupt") cancel();
    if (reply === "yes") return YES;
    if (reply === "no" || reply === "interrupt") return NO;
    const domains = question.grants ?? [];
    if (domains.length > 0) return { ...YES, grant: { domains, for: reply } };
    // What was asked named nothing that could be granted.
    if (reply === "call") return YES;
    await keep(question, reply);
    return YES;
  };
  const behind = async (
    earlier: Promise<unknown>,
    question: Question,
    signal: AbortSignal,
  ): Promise<Answer> => {
    await earlier.catch(() => undefined);
    if (signal.aborted) return NO;
    if (settled().some((each) => isSameQuestion(each, question))) return YES;
    return answered(question, await ask(question, signal));
  };
  return {
    ask: (question, signal) => {
      const known = settledByMode(question);
      if (known !== undefined) return Promise.resolve(known);
      const answer = behind(last, question, signal);
      last = answer;
      return answer;
    },
  };
}

const YES: Answer = { runs: true, by: "person", reason: "" };
const NO: Answer = { runs: false, by: "person", reason: "" };

const CODES = { SIGTERM: EXIT.terminated, SIGHUP: EXIT.hangup } as const;

interface Leaving extends Disposable {
  /** With what it ends; undefined as long as nothing has said so. */
  readonly code: () => ExitCode | undefined;
}

/** SIGTERM, SIGHUP, and a terminal that is gone: the chat ends in order. A second one at once. */
function leavingBy(leave: (signal: Signal) => void): Leaving {
  const held: { code?: ExitCode } = {};
  const by = (signal: Signal, code: ExitCode) => (): void => {
    if (held.code !== undefined && signal !== "reader-left") process.exit(code);
    if (held.code !== undefined) return;
    held.code = code;
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
    code: () => held.code,
    [Symbol.dispose]: () => {
      for (const remove of handlers) remove();
    },
  };
}
