import type { Finished } from "../../agent/agent-run.ts";
import { Interrupted, type Signal } from "../../agent/outcome.ts";
import type { ChatView } from "../../cli/chat/chat-view.ts";
import { type Keyboard, type Reply, YesNo } from "../../cli/chat/terminal-input.ts";
import type { Config } from "../../config/load-config.ts";
import type { Settings } from "../../config/settings-schema.ts";
import type { Provider } from "../../core/model-provider.ts";
import type { Approver, Question } from "../../core/ports.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import { approvalText } from "../../render/tty/approval.ts";
import type { Output } from "../../render/tty/output.ts";
import type { ModelClient } from "../model-access.ts";
import type { RunIndex } from "../search/run-index.ts";
import { ChatBox, type Conversation, type TurnInput } from "./chat-session.ts";

interface ChatControllerParts {
  readonly settings: Settings;
  /** Absolute and resolved. */
  readonly workspace: string;
  readonly runtime: string | null;
  readonly store: () => Promise<SessionStore>;
  readonly face: ChatView;
  readonly origins: Config["origins"];
  readonly approver: Approver;
  readonly warn: (text: string) => void;
}

/** What a chat works with from request to request. What is heavy is loaded when it is first wanted. */
export class ChatController implements AsyncDisposable {
  readonly workspace: string;
  readonly store: () => Promise<SessionStore>;
  readonly #parts: ChatControllerParts;
  readonly #box: ChatBox;
  #settings: Settings;
  readonly #changed: Record<string, string> = {};
  #talk: Conversation | undefined;
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
        const { workspace, runtime, warn } = parts;
        const opening = { settings: this.#settings, workspace, runtime, watchChanges: true, keep, warn };
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
  get talk(): Conversation | undefined {
    return this.#talk;
  }

  /** What the first request will want is loaded while its text is typed. */
  readonly ahead = async (): Promise<void> => {
    await Promise.all([import("./chat-session.ts"), import("./chat-session.ts"), this.model()]).catch(
      () => undefined,
    );
  };

  /** For all requests from now on. */
  async change(settings: Partial<Pick<Settings, "mode" | "chat_model">>): Promise<void> {
    const other = settings.mode !== undefined && settings.mode !== this.#settings.mode;
    this.#settings = { ...this.#settings, ...settings };
    for (const key of Object.keys(settings)) this.#changed[key] = "the chat";
    if (other) await this.#box.close();
    if (settings.chat_model === undefined) return;
    this.#model = undefined;
    this.#provider = undefined;
  }

  async model(): Promise<ModelClient> {
    const { modelClient: modelSeat } = await import("../model-access.ts");
    this.#model ??= modelSeat(this.#settings);
    return this.#model;
  }

  /** Goes on with an earlier session. */
  async resume(session: Session): Promise<Conversation> {
    this.#talk = await this.#over(session, true);
    return this.#talk;
  }

  /** One request to its end; the first begins a session. */
  async request(text: string): Promise<Finished> {
    const [{ newSession }, { chatTurn: turn }] = await Promise.all([
      import("../session-access.ts"),
      import("./chat-session.ts"),
    ]);
    const about = { workspace: this.workspace, prompt: text };
    this.#talk ??= await this.#over(newSession(await this.store(), this.#settings, about), false);
    return this.#work(this.#talk, (ground) => turn(ground, text));
  }

  /** Whether the conversation is shorter now. */
  async compact(talk: Conversation): Promise<boolean> {
    const { compactNow } = await import("./chat-session.ts");
    return this.#work(talk, compactNow);
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
    const [{ openConversation: talkOver }, { runIndex }] = await Promise.all([
      import("./chat-session.ts"),
      import("../search/run-index.ts"),
    ]);
    const { workspace, settings } = this;
    await this.#index?.[Symbol.asyncDispose]();
    const index = runIndex({
      settings: () => this.settings,
      origins: this.#parts.origins,
      workspace,
      session: session.id,
      box: this.#box.now,
    });
    this.#index = index;
    return talkOver({ store: await this.store(), session, resumed, settings, workspace, index });
  }

  async #work<T>(talk: Conversation, work: (ground: TurnInput) => Promise<T>): Promise<T> {
    const working = new AbortController();
    this.#working = working;
    const { face, approver } = this.#parts;
    try {
      const model = await this.model();
      return await work({
        settings: this.#settings,
        origins: { ...this.#parts.origins, ...this.#changed },
        workspace: this.workspace,
        store: await this.store(),
        talk,
        box: this.#box,
        model,
        provider: (this.#provider ??= model.provider()),
        approver,
        show: (event) => face.take(event),
        signal: working.signal,
      });
    } finally {
      this.#working = undefined;
      face.end();
    }
  }
}

interface QuestionParts {
  readonly keyboard: Keyboard;
  readonly output: Output;
  /** Nothing else is written until what it gives is called. */
  readonly pause: () => () => void;
}

/** Questions on the terminal. Only keys that are pressed after one is on the screen answer it. */
export function questionsOn({ keyboard, output, pause }: QuestionParts) {
  return async (question: Question, signal: AbortSignal): Promise<Reply> => {
    const resume = pause();
    try {
      // What was typed before may still be on its way here; what comes behind the question is never dropped.
      for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      keyboard.drop();
      if (signal.aborted) return "no";
      output.write(approvalText(question, output));
      return await answered(keyboard, output, signal);
    } finally {
      resume();
    }
  };
}

function answered(keyboard: Keyboard, output: Output, signal: AbortSignal): Promise<Reply> {
  const { promise, resolve } = Promise.withResolvers<Reply>();
  const answer = new YesNo();
  const end = (reply: Reply): void => {
    keyboard.done(take);
    signal.removeEventListener("abort", cancelled);
    resolve(reply);
  };
  const take: Parameters<Keyboard["read"]>[0] = (piece) => {
    const { echo, reply } = answer.take(piece);
    output.write(echo);
    if (reply !== undefined) end(reply);
  };
  const cancelled = (): void => {
    output.write("\n");
    end("no");
  };
  signal.addEventListener("abort", cancelled, { once: true });
  keyboard.read(take);
  return promise;
}
