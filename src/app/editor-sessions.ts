import manifest from "../../package.json" with { type: "json" };
import { NOTICE } from "../agent/context/history.ts";
import type { Config, ConfigRequest } from "../config/load-config.ts";
import { type Mode, MODES } from "../core/decision.ts";
import { EXIT, type ExitCode, HarnessError, UnknownSession } from "../core/errors.ts";
import type { Message } from "../core/model-provider.ts";
import type { Answer, Approver, Question } from "../core/ports.ts";
import { maskSecrets } from "../core/secrets.ts";
import type { Session, SessionStore } from "../core/session.ts";
import {
  type AcpHost,
  type EditorLink,
  type EditorSession,
  type ListedSession,
  serveAcp,
} from "../extensions/acp-agent.ts";
import type { MessageWire } from "../extensions/message-lines.ts";
import { cleanStrings } from "../render/renderers.ts";
import { checkNetwork } from "./boxes/granted-network.ts";
import { type Host, runWorkspace } from "./host.ts";
import { untrustedIn } from "./project/project-trust.ts";
import { askInTurn, NO, YES } from "./run/prompter.ts";
import { ChatController } from "./run/chat-controller.ts";
import { openSessions, sessionsWorkspace } from "./sessions/session-access.ts";
import { hostForCopy, type TakenUp } from "./sessions/session-hold.ts";
import { toStdout, untilLeft } from "./interruption.ts";

interface EditorParts {
  readonly host: Host;
  /** The settings in force in a folder, with the flags of the command, and the settings of an earlier session. */
  readonly configFor: (folder: string, overrides: ConfigRequest["flags"] | undefined) => Promise<Config>;
  readonly runtime: string | null;
  readonly warn: (text: string) => void;
}

/** The number of sessions that an editor shows for a folder. */
const MAX_LISTED = 100;

/** The sessions of one editor, each a chat of its own with the editor as its person. */
class EditorSessions implements AcpHost, AsyncDisposable {
  readonly version = manifest.version;
  readonly #parts: EditorParts;
  readonly #open = new Set<EditorChat>();
  /** Ids, with their folders, of sessions without any message: no store knows them. */
  readonly #promised = new Map<string, string>();
  #store: SessionStore | undefined;

  constructor(parts: EditorParts) {
    this.#parts = parts;
  }

  async begin(folder: string, link: EditorLink): Promise<EditorSession> {
    const workspace = runWorkspace(folder, "open a folder that exists");
    const id = this.#sessions().reserve();
    this.#promised.set(id, workspace);
    return this.#chat(workspace, link, id);
  }

  async resume(
    id: string,
    folder: string,
    link: EditorLink,
    leave: () => Promise<void>,
  ): Promise<EditorSession> {
    const workspace = runWorkspace(folder, "open a folder that exists");
    const session = this.#kept(id, workspace);
    const own = session?.info().workspace ?? workspace;
    if (own !== workspace)
      throw new HarnessError(EXIT.usage, `session ${id} works in ${own}`, "open that folder");
    const taken = session === undefined ? undefined : await hostForCopy(this.#parts.host, session.id);
    const chat = await this.#chat(workspace, link, session?.id ?? id, taken);
    try {
      await leave();
      if (session !== undefined) await chat.resume(session);
      return chat;
    } catch (thrown) {
      await chat.close();
      throw thrown;
    }
  }

  /** Undefined if nothing was said in the session yet. */
  #kept(id: string, workspace: string): Session | undefined {
    try {
      return this.#sessions().open(id);
    } catch (thrown) {
      if (thrown instanceof UnknownSession && this.#promised.get(id) === workspace) return undefined;
      throw thrown;
    }
  }

  async list(folder: string | undefined): Promise<readonly ListedSession[]> {
    const filter = folder === undefined ? {} : { workspace: await sessionsWorkspace(folder) };
    return this.#sessions()
      .list({ ...filter, limit: MAX_LISTED })
      .map(({ id, workspace, title, changed }) => ({ id, workspace, title, changed }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    using _ = this.#store;
    await Promise.all([...this.#open].map((chat) => chat.close()));
  }

  #sessions(): SessionStore {
    return (this.#store ??= openSessions(this.#parts.host, this.#parts.warn));
  }

  async #chat(workspace: string, link: EditorLink, id: string, taken?: TakenUp): Promise<EditorChat> {
    const { configFor, runtime, warn } = this.#parts;
    const host = taken?.host ?? this.#parts.host;
    const config = await configFor(workspace, taken?.overrides);
    checkNetwork(host, config.settings);
    const untrusted = await untrustedIn(host, workspace);
    const store = this.#sessions();
    const open = this.#open;
    const chat: EditorChat = new EditorChat({
      host,
      config,
      runtime,
      warn,
      workspace,
      link,
      id,
      store,
      notes: untrusted === undefined ? [] : [untrusted.text],
      room: () => roomIn(workspace, chat, open),
      left: () => void open.delete(chat),
    });
    open.add(chat);
    return chat;
  }
}

/** Makes idle chats release the folder: two boxes must never work in one folder. */
async function roomIn(workspace: string, chat: EditorChat, open: Iterable<EditorChat>): Promise<void> {
  for (const other of open) if (other !== chat && other.workspace === workspace) await other.release();
}

interface ChatParts {
  readonly host: Host;
  readonly config: Config;
  readonly runtime: string | null;
  readonly warn: (text: string) => void;
  readonly workspace: string;
  readonly link: EditorLink;
  readonly id: string;
  readonly store: SessionStore;
  /** Sent with the first prompt. */
  readonly notes: readonly string[];
  /** Called before the chat works in the folder. */
  readonly room: () => Promise<void>;
  readonly left: () => void;
}

class EditorChat implements EditorSession {
  readonly id: string;
  readonly workspace: string;
  readonly modes: readonly Mode[];
  readonly #parts: ChatParts;
  readonly #chat: ChatController;
  #notes: readonly string[];
  #working: Promise<unknown> | undefined;
  /** Whether the current prompt was cancelled. */
  #cancelled = false;

  constructor(parts: ChatParts) {
    const { config, workspace, link, id, store } = parts;
    this.id = id;
    this.workspace = workspace;
    this.modes = MODES.slice(0, MODES.indexOf(config.settings.mode) + 1);
    this.#parts = parts;
    this.#notes = parts.notes;
    this.#chat = new ChatController({
      ...parts,
      ...config,
      store: () => Promise.resolve(store),
      view: { take: (event) => link.show(cleanStrings(event, maskSecrets)), end: () => undefined },
      approver: editorAsPerson(link, () => this.#chat.conversation?.session),
    });
  }

  readonly mode = (): Mode => this.#chat.settings.mode;
  readonly busy = (): boolean => this.#working !== undefined;
  readonly cancel = (): void => {
    this.#cancelled = true;
    this.#chat.cancel("SIGINT");
  };
  readonly setMode = (mode: Mode): Promise<void> => this.#chat.change({ mode });
  readonly messages = (): readonly Message[] =>
    shownMessages(cleanStrings(this.#chat.conversation?.memory.history.messages ?? [], maskSecrets));

  readonly commands = async () => (await this.#chat.commands()).all;

  async prompt(text: string) {
    this.#cancelled = false;
    const working = this.#request(text);
    this.#working = working;
    try {
      return await working;
    } catch (thrown) {
      if (!this.#cancelled) throw thrown;
      return CANCELLED;
    } finally {
      this.#working = undefined;
    }
  }

  async #request(text: string) {
    const { room, link } = this.#parts;
    for (const note of this.#notes) link.say(note);
    this.#notes = [];
    await room();
    const prompt = await this.#expanded(text);
    return this.#cancelled ? CANCELLED : this.#chat.request(prompt);
  }

  /**
   * Expands a line that names a command of the user's or of a trusted project; the text is handled like every prompt.
   */
  async #expanded(text: string): Promise<string> {
    if (!text.trimStart().startsWith("/")) return text;
    const { expandedPrompt } = await import("./project/skills-and-commands.ts");
    const { host, workspace, link } = this.#parts;
    return expandedPrompt(host, workspace, text, link.say);
  }

  async resume(session: Session): Promise<void> {
    await this.#chat.resume(session);
  }

  async release(): Promise<void> {
    if (!this.busy()) await this.#chat.release();
  }

  readonly close = async (): Promise<void> => {
    this.#parts.left();
    this.cancel();
    await this.#working?.catch(() => undefined);
    await this.#chat[Symbol.asyncDispose]();
  };
}

/** What harness itself told the model in the user's role is not shown as words of the person. */
export const shownMessages = (messages: readonly Message[]): readonly Message[] =>
  messages.flatMap((each): readonly Message[] => {
    if (each.role !== "user") return [each];
    const [own = "", ...notes] = `\n\n${each.text}`.split(`\n\n${NOTICE}`);
    const text = own.trimStart();
    return [
      ...(text === "" ? [] : [{ ...each, text }]),
      ...notes.map((note) => ({ role: "assistant" as const, text: `\n\n${NOTICE}${note}\n\n`, calls: [] })),
    ];
  });

/** For a cancel before there was a turn that could report it. */
const CANCELLED = { status: "interrupted", reason: "cancelled" } as const;

const SILENT: Answer = { runs: false, by: "nobody", reason: "the editor gave no answer" };

/** The person behind an editor, who is asked one question at a time. */
function editorAsPerson(link: EditorLink, session: () => Session | undefined): Approver {
  const settled: Question[] = [];
  return askInTurn(
    () => settled,
    async (question, signal) => {
      const reply = await link.ask(question, signal);
      if (reply === undefined) return SILENT;
      if (reply === "reject") return NO;
      const domains = question.grants ?? [];
      if (domains.length > 0)
        return { ...YES, grant: { domains, for: reply === "session" ? "session" : "call" } };
      if (reply === "session") {
        session()?.append({ kind: "answered", question, word: "session" });
        settled.push(question);
      }
      return YES;
    },
  );
}

/** Serves one editor over standard input and output until it leaves, or a signal arrives; returns the exit code. */
export async function serveEditor({
  input,
  ...parts
}: EditorParts & { readonly input: MessageWire["input"] }): Promise<ExitCode> {
  const sessions = new EditorSessions(parts);
  const serving = serveAcp(sessions, { input, write: toStdout });
  return untilLeft(serving, () => sessions[Symbol.asyncDispose]());
}
