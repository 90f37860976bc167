/** Speaks the Agent Client Protocol with one editor. The host defines what a session is. */
import path from "node:path";
import {
  agent,
  type AgentContext,
  type AnyMessage,
  methods,
  PROTOCOL_VERSION,
  RequestError,
  type RequestPermissionRequest,
  type SessionModeState,
  type SessionUpdate,
  type Stream,
} from "@agentclientprotocol/sdk";
import { type Mode, MODES } from "../core/decision.ts";
import { HarnessError, UnknownSession } from "../core/errors.ts";
import type { AgentEvent, RunStatus } from "../core/events.ts";
import type { Message } from "../core/model-provider.ts";
import type { Question } from "../core/ports.ts";
import { ReplacedAnswer } from "../core/tool.ts";
import { isFields } from "../core/raw-data.ts";
import {
  commandsOf,
  type EditorCommand,
  failureOf,
  replacedAnswer,
  notice,
  type OpenDiffs,
  type Permission,
  permissionOf,
  permissionRequestOf,
  promptOf,
  replayed,
  stopOf,
  updatesOf,
} from "./acp-updates.ts";
import { messageLines, type MessageWire } from "./message-lines.ts";

/** The editor, as a session sees it. */
export interface EditorLink {
  readonly show: (event: AgentEvent) => void;
  readonly say: (text: string) => void;
  /** Undefined if the editor gave no answer. */
  readonly ask: (question: Question, signal: AbortSignal) => Promise<Permission | undefined>;
}

export interface EditorSession {
  readonly id: string;
  readonly workspace: string;
  /** None is looser than the mode with which the agent was started. */
  readonly modes: readonly Mode[];
  readonly mode: () => Mode;
  readonly setMode: (mode: Mode) => Promise<void>;
  readonly busy: () => boolean;
  /** The session is busy as soon as this is called, so a cancel that follows ends it, even if it has hardly begun. */
  readonly prompt: (text: string) => Promise<{ readonly status: RunStatus; readonly reason: string }>;
  readonly cancel: () => void;
  readonly messages: () => readonly Message[];
  /** The slash commands that are available now. */
  readonly commands: () => Promise<readonly EditorCommand[]>;
  readonly close: () => Promise<void>;
}

export interface ListedSession {
  readonly id: string;
  readonly workspace: string;
  readonly title: string;
  /** Milliseconds since 1970. */
  readonly changed: number;
}

export interface AcpHost {
  readonly version: string;
  readonly begin: (folder: string, link: EditorLink) => Promise<EditorSession>;
  /** `leave` closes the session if it is open already; called once nothing more speaks against its opening. */
  readonly resume: (
    id: string,
    folder: string,
    link: EditorLink,
    leave: () => Promise<void>,
  ) => Promise<EditorSession>;
  readonly list: (folder: string | undefined) => Promise<readonly ListedSession[]>;
}

export interface AcpServing {
  /** Resolves when the editor has left, or the connection was closed. */
  readonly closed: Promise<void>;
  readonly close: () => void;
}

/** Sessions of one editor that may be open at once. */
const MAX_SESSIONS = 32;

/** Serves one editor until it leaves. */
export function serveAcp(host: AcpHost, wire: MessageWire): AcpServing {
  const editor = new Editor(host);
  const connection = appOf(editor).connect(streamOver(wire));
  return { closed: connection.closed, close: () => connection.close() };
}

function appOf(editor: Editor) {
  const { session } = methods.agent;
  return agent({ name: "harness" })
    .onRequest(methods.agent.initialize, () => editor.initialize())
    .onRequest(methods.agent.authenticate, () => ({}))
    .onRequest(session.new, ({ params, client }) => editor.open(params, client))
    .onRequest(session.load, ({ params, client }) => editor.load(params, client, true))
    .onRequest(session.resume, ({ params, client }) => editor.load(params, client, false))
    .onRequest(session.list, ({ params }) => editor.list(params.cwd ?? undefined))
    .onRequest(session.close, ({ params }) => editor.close(params.sessionId))
    .onRequest(session.setMode, ({ params }) => editor.setMode(params.sessionId, params.modeId))
    .onRequest(session.prompt, ({ params, signal }) => editor.prompt(params, signal))
    .onNotification(session.cancel, ({ params }) => editor.find(params.sessionId)?.session.cancel());
}

interface OpenSession {
  readonly session: EditorSession;
  readonly updates: EditorUpdates;
}

interface SessionParams {
  readonly cwd: string;
  readonly mcpServers?: readonly unknown[];
  readonly additionalDirectories?: readonly string[];
}

type PromptBlocks = Parameters<typeof promptOf>[0];

class Editor {
  readonly #host: AcpHost;
  readonly #sessions = new Map<string, OpenSession>();
  #opening = 0;
  readonly #loading = new Set<string>();

  constructor(host: AcpHost) {
    this.#host = host;
  }

  find(id: string): OpenSession | undefined {
    return this.#sessions.get(id);
  }

  /** Always offers the one supported version: an editor that does not know it leaves. */
  initialize() {
    const { version } = this.#host;
    return {
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: "harness", title: "harness", version },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: false, audio: false, embeddedContext: true },
        mcpCapabilities: { http: false, sse: false },
        sessionCapabilities: { list: {}, resume: {}, close: {} },
      },
      authMethods: [],
    };
  }

  async open(where: SessionParams, client: AgentContext) {
    const updates = new EditorUpdates(client);
    const session = await this.#open(updates, where, () => this.#host.begin(folderOf(where), updates.link));
    return { sessionId: session.id, modes: modesOf(session) };
  }

  async load(
    { sessionId, ...where }: SessionParams & { readonly sessionId: string },
    client: AgentContext,
    again: boolean,
  ) {
    const folder = folderOf(where);
    if (this.#loading.has(sessionId))
      throw RequestError.invalidRequest({ sessionId }, "this session is already being opened");
    this.#loading.add(sessionId);
    const updates = new EditorUpdates(client);
    const leave = async (): Promise<void> => {
      await this.#sessions.get(sessionId)?.session.close();
      this.#sessions.delete(sessionId);
    };
    const opened = (): Promise<EditorSession> => this.#host.resume(sessionId, folder, updates.link, leave);
    const session = await this.#open(updates, where, opened).finally(() => this.#loading.delete(sessionId));
    if (again) for (const each of replayed(session.messages(), session.workspace)) updates.update(each);
    await updates.all();
    return { modes: modesOf(session) };
  }

  async list(folder: string | undefined) {
    const at = folder === undefined ? undefined : folderOf({ cwd: folder });
    const sessions = await withPersonErrors(() => this.#host.list(at));
    return {
      sessions: sessions.map(({ id, workspace, title, changed }) => ({
        sessionId: id,
        cwd: workspace,
        title,
        updatedAt: new Date(changed).toISOString(),
      })),
    };
  }

  async close(id: string) {
    const { session } = this.#known(id);
    this.#sessions.delete(id);
    session.cancel();
    await withPersonErrors(() => session.close());
    return {};
  }

  async setMode(id: string, mode: string) {
    const { session } = this.#known(id);
    const wanted = session.modes.find((each) => each === mode);
    if (wanted === undefined)
      throw RequestError.invalidParams(
        { modeId: mode },
        `the available modes are ${session.modes.join(", ")}`,
      );
    if (session.busy())
      throw RequestError.invalidRequest(undefined, "a prompt is still running: cancel it first");
    await withPersonErrors(() => session.setMode(wanted));
    return {};
  }

  async prompt(
    { sessionId, prompt }: { readonly sessionId: string; readonly prompt: PromptBlocks },
    signal: AbortSignal,
  ) {
    const { session, updates } = this.#known(sessionId);
    const text = promptOf(prompt);
    if (text === undefined)
      throw RequestError.invalidParams(undefined, "a prompt can have only text, links and text files");
    if (text.trim() === "") throw RequestError.invalidParams(undefined, "the prompt is empty");
    if (session.busy())
      throw RequestError.invalidRequest(undefined, "a prompt is already running in this session");
    const cancel = (): void => session.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const [ended] = await Promise.all([
        withPersonErrors(() => session.prompt(text)),
        updates.commands(session),
      ]);
      await updates.all();
      const failure = failureOf(ended);
      if (failure !== undefined) throw new RequestError(INTERNAL, failure);
      return { stopReason: stopOf(ended) };
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  }

  #known(id: string): OpenSession {
    const found = this.#sessions.get(id);
    if (found === undefined)
      throw new RequestError(NOT_FOUND, "no such session is open: session/load opens one", { sessionId: id });
    return found;
  }

  async #open(
    updates: EditorUpdates,
    where: SessionParams,
    make: () => Promise<EditorSession>,
  ): Promise<EditorSession> {
    if (this.#sessions.size + this.#opening >= MAX_SESSIONS)
      throw RequestError.invalidRequest(undefined, `${MAX_SESSIONS} sessions are open: close one of them`);
    this.#opening += 1;
    try {
      const session = await withPersonErrors(make);
      const { id, workspace } = session;
      updates.begin(id, workspace);
      this.#sessions.set(id, { session, updates });
      // After the answer: before it, the editor does not know the session.
      setImmediate(() => {
        for (const text of notesOnUnused(where)) updates.update(notice(text));
        void updates.commands(session);
      });
      return session;
    } finally {
      this.#opening -= 1;
    }
  }
}

/** Features that an editor offers but that would bypass the box or add another workspace. */
function notesOnUnused({ mcpServers = [], additionalDirectories = [] }: SessionParams): readonly string[] {
  return [
    ...(mcpServers.length === 0
      ? []
      : [
          "The editor's MCP servers are not used: they would run outside the box, and nothing in your own settings approves them. Add your own with `harness mcp add`.",
        ]),
    ...(additionalDirectories.length === 0
      ? []
      : ["The box holds one folder only: additional folders are not in it."]),
  ];
}

function folderOf({ cwd }: SessionParams): string {
  if (!path.isAbsolute(cwd)) throw RequestError.invalidParams({ cwd }, "cwd has to be an absolute path");
  return cwd;
}

const MODE_WORDS: Readonly<Record<Mode, readonly [name: string, description: string]>> = {
  "read-only": ["Read only", "Looks at the folder and changes nothing."],
  "workspace-write": [
    "Workspace",
    "Changes files in the folder; the box has no network except what was granted.",
  ],
  "danger-full-access": [
    "Full access",
    "Changes anything in the folder and reaches any network, without asking.",
  ],
};

const modesOf = (session: EditorSession): SessionModeState => ({
  currentModeId: session.mode(),
  availableModes: MODES.filter((mode) => session.modes.includes(mode)).map((id) => {
    const [name, description] = MODE_WORDS[id];
    return { id, name, description };
  }),
});

const INTERNAL = -32_603;
const INVALID = -32_602;
/** Tells editors to begin another session. */
const NOT_FOUND = -32_002;

/** Errors that a person can act on are passed on unchanged. */
async function withPersonErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (!(thrown instanceof HarnessError)) throw thrown;
    const next = thrown.remedy === "" ? "" : `; next: ${thrown.remedy}`;
    const code = thrown.exit === 2 ? INVALID : INTERNAL;
    throw new RequestError(thrown instanceof UnknownSession ? NOT_FOUND : code, `${thrown.message}${next}`);
  }
}

/** Sends the editor the updates of one session, in order. */
class EditorUpdates {
  readonly #client: AgentContext;
  #id = "";
  #workspace = "/";
  readonly #diffs: OpenDiffs = new Map();
  readonly #replaced = new ReplacedAnswer();
  #commands = "";
  #last: Promise<unknown> = Promise.resolve();

  constructor(client: AgentContext) {
    this.#client = client;
  }

  begin(id: string, workspace: string): void {
    this.#id = id;
    this.#workspace = workspace;
  }

  readonly link: EditorLink = {
    show: (event) => {
      const answer = this.#replaced.take(event);
      if (answer !== undefined) this.update(replacedAnswer(answer));
      for (const each of updatesOf(event, this.#workspace, this.#diffs)) this.update(each);
    },
    say: (text) => this.update(notice(text)),
    ask: (question, signal) => this.#ask(question, signal),
  };

  update(update: SessionUpdate): void {
    const sent = this.#client.notify(methods.client.session.update, { sessionId: this.#id, update });
    this.#last = Promise.allSettled([this.#last, sent]);
  }

  /** Sends the slash commands if they have changed. Unreadable command files are reported with a prompt. */
  async commands(session: EditorSession): Promise<void> {
    const all = await session.commands().catch(() => []);
    const update = commandsOf(all);
    const text = JSON.stringify(update);
    if (text === this.#commands || (this.#commands === "" && all.length === 0)) return;
    this.#commands = text;
    this.update(update);
  }

  /** Resolves when everything was sent to the editor. */
  async all(): Promise<void> {
    await this.#last;
  }

  async #ask(question: Question, signal: AbortSignal): Promise<Permission | undefined> {
    const { options, ...shown } = permissionRequestOf(question);
    const toolCall = {
      toolCallId: question.call,
      status: "pending" as const,
      rawInput: question.args,
      ...shown,
    };
    try {
      const permissionRequest: RequestPermissionRequest = { sessionId: this.#id, toolCall, options };
      const { outcome } = await this.#client.request(
        methods.client.session.requestPermission,
        permissionRequest,
        {
          cancellationSignal: signal,
          stopWaitingOnCancel: true,
        },
      );
      return outcome.outcome === "selected" ? permissionOf(outcome.optionId) : undefined;
    } catch {
      return undefined;
    }
  }
}

/**
 * A stream over untrusted lines: a line that is too long or not a message is answered and skipped. Nothing more is read
 * while the editor does not read our output.
 */
function streamOver({ input, write }: MessageWire): Stream {
  const lines = messageLines(input);
  const state = { written: Promise.resolve() };
  const put = (message: object): Promise<void> => {
    const written = write(message);
    state.written = written.catch(() => undefined);
    return written;
  };
  const refuse = (code: number, message: string): Promise<void> =>
    put({ jsonrpc: "2.0", id: null, error: { code, message } });
  const pull = async (controller: ReadableStreamDefaultController<AnyMessage>): Promise<void> => {
    for (;;) {
      await state.written;
      const next = await lines.next();
      if (next.done === true) return controller.close();
      const line = next.value;
      if (line.kind === "unreadable") await refuse(PARSE_ERROR, `Parse error: ${line.why}`);
      else if (isFields(line.value)) return controller.enqueue(line.value as AnyMessage);
      else await refuse(INVALID_REQUEST, "Invalid Request");
    }
  };
  return {
    readable: new ReadableStream<AnyMessage>({ pull }, { highWaterMark: 0 }),
    writable: new WritableStream<AnyMessage>({ write: put }),
  };
}

const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
