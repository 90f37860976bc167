import type { Finished } from "../../agent/agent-run.ts";
import type { Config } from "../../config/load-config.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { Interrupted, type Signal } from "../../core/errors.ts";
import type { Extensions } from "../../core/tool.ts";
import type { AgentEvent, Emit } from "../../core/events.ts";
import type { AnswerGrant } from "../../core/network.ts";
import type { Provider } from "../../core/model-provider.ts";
import type { Approver } from "../../core/ports.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import type { AskPerson } from "../../tools/tool-context.ts";
import { offeredSkills, openExtensions } from "../project/open-extensions.ts";
import type { ExpandedCommand, SlashCommands } from "../project/skills-and-commands.ts";
import { HarnessRequests } from "./session-grants.ts";
import type { Host } from "../host.ts";
import type { ModelClient } from "../model-access.ts";
import { ChatBox, chatTurn, compactNow, Conversation, type TurnInput } from "./chat-session.ts";
import { askedModel, type OpenSession } from "./composition.ts";
import { type Observers, observersFor } from "./run-observers.ts";
import type { Verdict } from "../../core/decision.ts";

interface ChatControllerParts {
  readonly host: Host;
  readonly settings: Settings;
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly runtime: string | null;
  readonly store: () => Promise<SessionStore>;
  /** Shows what a request does. */
  readonly view: { readonly take: (event: AgentEvent) => void; readonly end: () => void };
  readonly origins: Config["origins"];
  readonly approver: Approver;
  /** The person whom the model can ask; left out if nobody could answer in words. */
  readonly person?: AskPerson;
  readonly warn: (text: string) => void;
  /** The id promised for the session that the first request begins. */
  readonly id?: string;
}

/** Settings that a person can change during a chat. */
type Changeable = "mode" | "chat_model" | "allow_domains" | "provider" | "base_url";

/** How many new skills are named. */
const MAX_NAMED = 5;

/** The state that a chat keeps from request to request. */
export class ChatController implements AsyncDisposable {
  readonly workspace: string;
  readonly store: () => Promise<SessionStore>;
  /** The calls of this chat that were not simply allowed. */
  readonly decided = new DecidedCalls();
  readonly #parts: ChatControllerParts;
  readonly #box: ChatBox;
  #settings: Settings;
  readonly #changed: Record<string, string> = {};
  #conversation: Conversation | undefined;
  /** Hold on the current session: no other process works on it, or removes it. */
  #hold: { readonly session: string; readonly hold: AsyncDisposable } | undefined;
  #opened: OpenSession | undefined;
  #extensions: Extensions | undefined;
  /** Skills that the model or the person already knows of. */
  #skills: ReadonlySet<string> = new Set();
  readonly #requests: HarnessRequests;
  readonly #ending = new AbortController();
  #model: ModelClient | undefined;
  #provider: Provider | undefined;
  #working: AbortController | undefined;
  /** Observers of all requests; only the end of the chat waits for what they send. */
  #observers: Observers | undefined;

  constructor(parts: ChatControllerParts) {
    this.#parts = parts;
    this.workspace = parts.workspace;
    this.store = parts.store;
    this.#settings = parts.settings;
    this.#requests = new HarnessRequests({
      ...parts,
      domains: () => this.#settings.allow_domains,
      emit: (event) => this.#box.emit(event),
    });
    const warned = new Set<string>();
    // A chat may have many boxes, each of which would give the same warning.
    const warn = (text: string): void => {
      if (!warned.has(text)) parts.warn(text);
      warned.add(text);
    };
    const { host, workspace, runtime } = parts;
    this.#box = new ChatBox({
      opening: (keep) => ({
        host,
        settings: this.#settings,
        workspace,
        runtime,
        keep,
        warn,
        mayGrant: true,
      }),
      // Only boxes over the folder itself are shared: a layer or a copy belongs to one session.
      shared: parts.settings.isolation === "bind",
    });
  }

  get host(): Host {
    return this.#parts.host;
  }

  get settings(): Settings {
    return this.#settings;
  }

  /** The origin of each setting. */
  get origins(): Config["origins"] {
    return { ...this.#parts.origins, ...this.#changed };
  }

  /** Undefined before the first request. */
  get conversation(): Conversation | undefined {
    return this.#conversation;
  }

  /** Loads what the first request will need while its text is typed. */
  readonly ahead = async (): Promise<void> => {
    await this.model().catch(() => undefined);
  };

  /** The current words after a slash in addition to the chat's own commands. */
  async commands(): Promise<SlashCommands> {
    const { slashCommands } = await import("../project/skills-and-commands.ts");
    return slashCommands(this.#parts.host, this.workspace);
  }

  /** The expansion of a line that names such a command; otherwise a note on what is left out. */
  async expansion(line: string): Promise<ExpandedCommand | string> {
    const { expansionOf } = await import("../project/skills-and-commands.ts");
    const commands = await this.commands();
    return expansionOf(line, commands) ?? commands.note;
  }

  /** Applies to all requests from now on. */
  async change(settings: Partial<Pick<Settings, Changeable>>): Promise<void> {
    const other =
      (settings.mode !== undefined && settings.mode !== this.#settings.mode) ||
      settings.allow_domains !== undefined;
    this.#settings = { ...this.#settings, ...settings };
    for (const key of Object.keys(settings)) this.#changed[key] = "the chat";
    if (other) await this.#box.close();
    if (settings.chat_model === undefined && settings.provider === undefined) return;
    this.#model = undefined;
    this.#provider = undefined;
  }

  /** The running box already has the grant; later boxes get it too, and the model is told. */
  async #keepGrant({ domains, for: term }: AnswerGrant): Promise<void> {
    const { allow_domains: known } = this.#settings;
    this.#settings = { ...this.#settings, allow_domains: [...new Set([...known, ...domains])] };
    this.#changed["allow_domains"] = "the chat";
    if (term !== "always") return;
    const file = await this.keep(domains);
    this.#parts.warn(`granted from now on by ${file}`);
  }

  /** Writes lasting grants to the user's own settings; returns the file. */
  async keep(grants: readonly string[]): Promise<string> {
    const { addGrants } = await import("../../config/config-edit.ts");
    const [file] = this.#parts.host.places.configFiles;
    await addGrants(file, grants);
    return file;
  }

  async model(): Promise<ModelClient> {
    const { modelClient } = await import("../model-access.ts");
    this.#model ??= modelClient(this.#parts.host, this.#settings);
    return this.#model;
  }

  /** Continues an earlier session. */
  async resume(session: Session): Promise<Conversation> {
    return this.#begun(session, true);
  }

  /** Replaces the current conversation; if the new one cannot be opened, the current one stays. */
  async #begun(session: Session, resumed: boolean): Promise<Conversation> {
    const { id } = session;
    const before = this.#hold;
    if (before?.session === id) return (this.#conversation = await this.#over(session, resumed));
    const { holdSession } = await import("../sessions/session-hold.ts");
    await using taking = new AsyncDisposableStack();
    const hold = taking.use(await holdSession(this.#parts.host, id));
    this.#conversation = await this.#over(session, resumed);
    taking.move();
    this.#hold = { session: id, hold };
    await before?.hold[Symbol.asyncDispose]();
    return this.#conversation;
  }

  async #letGo(): Promise<void> {
    const { hold } = this.#hold ?? {};
    this.#hold = undefined;
    await hold?.[Symbol.asyncDispose]();
  }

  /** The next request begins a session of its own, with a box of its own. */
  async begin(): Promise<void> {
    await this.#box.close();
    this.#conversation = undefined;
    await this.#letGo();
  }

  /** Runs one request to its end; the first begins a session. */
  async request(text: string): Promise<Finished> {
    return this.aside(async (signal) => {
      if (this.#conversation !== undefined) await this.#tellNewSkills();
      const { newSession } = await import("../sessions/session-access.ts");
      const { id } = this.#parts;
      const about = { workspace: this.workspace, prompt: text, ...(id === undefined ? {} : { id }) };
      const conversation =
        this.#conversation ??
        (await this.#begun(newSession(await this.store(), this.#settings, about), false));
      return this.#work(conversation, signal, (input) => chatTurn(input, text));
    });
  }

  /** Tells the person instead of the model: changing a session's prompt would make servers process all of it again. */
  async #tellNewSkills(): Promise<void> {
    const names = await offeredSkills(this.#parts.host, this.workspace);
    const fresh = names.filter((name) => !this.#skills.has(name));
    const [first] = fresh;
    if (first === undefined) return;
    this.#skills = new Set([...this.#skills, ...names]);
    const [they, it] = fresh.length === 1 ? ["skill", "it"] : ["skills", "them"];
    this.#parts.warn(
      `new ${they} since this session began: ${fresh.slice(0, MAX_NAMED).join(", ")}; the model is offered ${it} in a new session (leave, then: harness); here, type /${first}`,
    );
  }

  /** Whether the conversation is shorter now. */
  async compact(conversation: Conversation): Promise<boolean> {
    return this.aside((signal) => this.#work(conversation, signal, compactNow));
  }

  /**
   * Marks the chat as busy until the work ends, and lets a cancel end it. Used for requests, and for work on behalf of
   * the person alone.
   */
  async aside<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const working = new AbortController();
    this.#working = working;
    try {
      return await work(working.signal);
    } finally {
      this.#working = undefined;
    }
  }

  /** Ends the current work; false if there is none. */
  cancel(signal: Signal): boolean {
    if (this.#working === undefined || this.#working.signal.aborted) return false;
    this.#working.abort(new Interrupted(signal));
    return true;
  }

  /** Whether a box is running or starting. */
  get hasBox(): boolean {
    return this.#box.isHeld;
  }

  get busy(): boolean {
    return this.#working !== undefined;
  }

  /** Frees the folder for others while no request is worked on; the next request gets another box. */
  async release(): Promise<void> {
    if (!this.busy) await this.#box.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new Error("the chat has ended"));
    await this.#extensions?.[Symbol.asyncDispose]();
    await this.#requests[Symbol.asyncDispose]();
    await this.#opened?.[Symbol.asyncDispose]();
    await this.#box[Symbol.asyncDispose]();
    await this.#observers?.[Symbol.asyncDispose]();
    await this.#letGo();
  }

  async #over(session: Session, resumed: boolean): Promise<Conversation> {
    const { host, origins, warn, person } = this.#parts;
    const { workspace, settings } = this;
    await this.#opened?.[Symbol.asyncDispose]();
    await this.#extensions?.[Symbol.asyncDispose]();
    this.#skills = new Set(await offeredSkills(host, workspace));
    const { signal } = this.#ending;
    const [box, requests] = [this.#box.now, this.#requests];
    const emit: Emit = (event) => this.#box.emit(event);
    const around = { host, settings, origins, workspace, warn };
    const own = { session: session.id, box, requests, emit, signal };
    const extensions = await openExtensions({ ...around, ...own });
    this.#extensions = extensions;
    const conversation = await Conversation.open(
      { ...around, store: await this.store(), session, resumed },
      { extensions, box, current: () => this.settings, person },
    );
    this.#opened = conversation.opened;
    return conversation;
  }

  async #work<T>(
    conversation: Conversation,
    signal: AbortSignal,
    work: (input: TurnInput) => Promise<T>,
  ): Promise<T> {
    const { host, view, approver, warn, origins } = this.#parts;
    const { settings, workspace } = this;
    const observers = (this.#observers ??= await observersFor({ host, settings, origins }));
    try {
      const client = await this.model();
      this.#provider ??= client.provider();
      return await work({
        host,
        settings,
        origins: this.origins,
        workspace,
        store: await this.store(),
        warn,
        conversation,
        box: this.#box,
        requests: this.#requests,
        model: askedModel(client, { settings, replayed: undefined, signal }, this.#provider),
        approver,
        keepGrant: (grant) => this.#keepGrant(grant),
        show: (event) => {
          view.take(event);
          this.decided.take(event);
          observers.take(event);
        },
        signal,
      });
    } catch (thrown) {
      observers.failed(thrown);
      throw thrown;
    } finally {
      view.end();
    }
  }
}

/** A call that was asked about or denied, and its outcome. */
export interface DecidedCall {
  readonly tool: string;
  /** The judged command or path; empty if the call itself was judged. */
  readonly what: string;
  readonly decision: Verdict;
  readonly runs: boolean;
  readonly by: Extract<AgentEvent, { readonly type: "call.decided" }>["by"];
  readonly rule: string;
  readonly reason: string;
}

/** A chat's latest calls that were not simply allowed, collected from its events. */
export class DecidedCalls {
  readonly #tools = new Map<string, string>();
  readonly #last: DecidedCall[] = [];

  get last(): readonly DecidedCall[] {
    return this.#last;
  }

  take(event: AgentEvent): void {
    if (event.type === "run.started") this.#tools.clear();
    if (event.type === "call.proposed") this.#tools.set(event.call, event.tool);
    if (event.type !== "call.decided" || (event.decision === "allow" && event.runs)) return;
    this.#last.push(decidedCall(event, this.#tools.get(event.call) ?? ""));
    if (this.#last.length > MAX_DECIDED) this.#last.shift();
  }
}

type Decided = Extract<AgentEvent, { readonly type: "call.decided" }>;

function decidedCall({ decision, runs, by, judged, rules }: Decided, tool: string): DecidedCall {
  const { commands = [], writes = [], reads = [] } = judged ?? {};
  const [what = ""] = [...commands, ...writes, ...reads];
  const [rule = { id: "", reason: "" }] = rules;
  return { tool, what, decision, runs, by, rule: rule.id, reason: rule.reason };
}

const MAX_DECIDED = 20;
