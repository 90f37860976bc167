import type { Finished } from "../../agent/agent-run.ts";
import type { Config } from "../../config/load-config.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { Interrupted, type Signal } from "../../core/errors.ts";
import type { AgentEvent } from "../../core/events.ts";
import type { Provider } from "../../core/model-provider.ts";
import type { Approver } from "../../core/ports.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import type { Host } from "../host.ts";
import type { ModelClient } from "../model-access.ts";
import { type RunIndex, runIndex } from "../search/run-index.ts";
import {
  ChatBox,
  chatTurn,
  compactNow,
  type Conversation,
  openConversation,
  type TurnInput,
} from "./chat-session.ts";

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
  readonly warn: (text: string) => void;
}

/** What a chat works with from request to request. */
export class ChatController implements AsyncDisposable {
  readonly workspace: string;
  readonly store: () => Promise<SessionStore>;
  readonly #parts: ChatControllerParts;
  readonly #box: ChatBox;
  #settings: Settings;
  readonly #changed: Record<string, string> = {};
  #conversation: Conversation | undefined;
  #index: RunIndex | undefined;
  #model: ModelClient | undefined;
  #provider: Provider | undefined;
  #working: AbortController | undefined;

  constructor(parts: ChatControllerParts) {
    this.#parts = parts;
    this.workspace = parts.workspace;
    this.store = parts.store;
    this.#settings = parts.settings;
    this.#box = new ChatBox(
      async (signal, keep) => {
        const { openBoxFor } = await import("../box-access.ts");
        const { host, workspace, runtime, warn } = parts;
        const opening = {
          host,
          settings: this.#settings,
          workspace,
          runtime,
          watchChanges: true,
          keep,
          warn,
        };
        return openBoxFor(opening, signal);
      },
      // What is changed outside of the workspace belongs to one session.
      parts.settings.isolation === "bind",
    );
  }

  get settings(): Settings {
    return this.#settings;
  }

  /** Undefined before the first request. */
  get conversation(): Conversation | undefined {
    return this.#conversation;
  }

  /** What the first request will want is loaded while its text is typed. */
  readonly ahead = async (): Promise<void> => {
    await this.model().catch(() => undefined);
  };

  /** For all requests from now on. */
  async change(settings: Partial<Pick<Settings, "mode" | "chat_model" | "allow_domains">>): Promise<void> {
    const other =
      (settings.mode !== undefined && settings.mode !== this.#settings.mode) ||
      settings.allow_domains !== undefined;
    this.#settings = { ...this.#settings, ...settings };
    for (const key of Object.keys(settings)) this.#changed[key] = "the chat";
    if (other) await this.#box.close();
    if (settings.chat_model === undefined) return;
    this.#model = undefined;
    this.#provider = undefined;
  }

  /** Grants for all that comes, in the user's own settings; the file. */
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

  /** Goes on with an earlier session. */
  async resume(session: Session): Promise<Conversation> {
    this.#conversation = await this.#over(session, true);
    return this.#conversation;
  }

  /** One request to its end; the first begins a session. */
  async request(text: string): Promise<Finished> {
    const { newSession } = await import("../session-access.ts");
    const about = { workspace: this.workspace, prompt: text };
    this.#conversation ??= await this.#over(newSession(await this.store(), this.#settings, about), false);
    return this.#work(this.#conversation, (input) => chatTurn(input, text));
  }

  /** Whether the conversation is shorter now. */
  async compact(conversation: Conversation): Promise<boolean> {
    return this.#work(conversation, compactNow);
  }

  /** Ends what is worked on; false when nothing is. */
  cancel(signal: Signal): boolean {
    if (this.#working === undefined || this.#working.signal.aborted) return false;
    this.#working.abort(new Interrupted(signal));
    return true;
  }

  get busy(): boolean {
    return this.#working !== undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#index?.[Symbol.asyncDispose]();
    await this.#box[Symbol.asyncDispose]();
  }

  async #over(session: Session, resumed: boolean): Promise<Conversation> {
    const { workspace, settings } = this;
    await this.#index?.[Symbol.asyncDispose]();
    const index = runIndex({
      host: this.#parts.host,
      settings: () => this.settings,
      origins: this.#parts.origins,
      workspace,
      session: session.id,
      box: this.#box.now,
    });
    this.#index = index;
    const { host } = this.#parts;
    return openConversation({
      host,
      store: await this.store(),
      session,
      resumed,
      settings,
      workspace,
      index,
    });
  }

  async #work<T>(conversation: Conversation, work: (input: TurnInput) => Promise<T>): Promise<T> {
    const working = new AbortController();
    this.#working = working;
    const { view, approver } = this.#parts;
    try {
      const model = await this.model();
      return await work({
        host: this.#parts.host,
        settings: this.#settings,
        origins: { ...this.#parts.origins, ...this.#changed },
        workspace: this.workspace,
        store: await this.store(),
        conversation,
        box: this.#box,
        model,
        provider: (this.#provider ??= model.provider()),
        approver,
        show: (event) => view.take(event),
        signal: working.signal,
      });
    } finally {
      this.#working = undefined;
      view.end();
    }
  }
}
