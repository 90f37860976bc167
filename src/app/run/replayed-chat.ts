import type { Finished } from "../../agent/agent-run.ts";
import type { Config } from "../../config/load-config.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { HarnessError } from "../../core/errors.ts";
import { NO_EXTENSIONS } from "../../core/tool.ts";
import type { AgentEvent } from "../../core/events.ts";
import type { Approver } from "../../core/ports.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import type { AskPerson } from "../../tools/tool-context.ts";
import { HarnessRequests } from "../harness-requests.ts";
import type { Host } from "../host.ts";
import { modelClient } from "../model-access.ts";
import { type RunIndex, runIndex } from "../search/run-index.ts";
import { withCanaries } from "./canary-watch.ts";
import type { ModelAsked } from "./asked-run.ts";
import { ChatBox, chatTurn, type Conversation, openConversation } from "./chat-session.ts";

interface ReplayedChatParts {
  readonly host: Host;
  readonly origins: Config["origins"];
  readonly store: SessionStore;
  readonly session: Session;
  /** Absolute and resolved. */
  readonly workspace: string;
  /** Receives the errors that kept a box from starting, or ended it. */
  readonly failed: (thrown: unknown) => void;
}

/** A request of a chat, with the people and settings of then. */
interface ReplayedTurn {
  readonly text: string;
  /** The model that replied then. */
  readonly model: ModelAsked;
  readonly settings: Settings;
  readonly freshBox: boolean;
  readonly resumed: boolean;
  readonly approver: Approver;
  readonly person: AskPerson;
  readonly show: (event: AgentEvent) => void;
}

/**
 * Plays requests of a chat with the code of a chat: one memory and one box for all of them, until the mode changes or
 * the original box changed. There are no extensions and no network.
 */
export class ReplayedChat implements AsyncDisposable {
  readonly #parts: ReplayedChatParts;
  readonly #box: ChatBox;
  #settings: Settings | undefined;
  #person: AskPerson = () => Promise.resolve(undefined);
  #conversation: Conversation | undefined;
  #index: RunIndex | undefined;

  constructor(parts: ReplayedChatParts) {
    this.#parts = parts;
    this.#box = new ChatBox(async (signal, keep, told) => {
      const { host, workspace, failed } = parts;
      const settings = this.#now();
      const { openBoxFor } = await import("../box-access.ts");
      try {
        const opening = { host, settings, workspace, runtime: null, watchChanges: true, keep, warn: noWords };
        const box = await openBoxFor(opening, signal);
        return settings.canaries ? withCanaries(box, told) : box;
      } catch (thrown) {
        failed(thrown);
        throw thrown;
      }
    }, false);
  }

  /** Undefined if the request came to no end. */
  async play(turn: ReplayedTurn, signal: AbortSignal): Promise<Finished | undefined> {
    const { host, origins, store, workspace } = this.#parts;
    const { settings, approver, show } = turn;
    if (turn.freshBox || settings.mode !== this.#settings?.mode) await this.#box.close();
    this.#settings = settings;
    this.#person = turn.person;
    this.#conversation ??= await this.#open(settings, turn.resumed);
    const model = modelClient(host, settings);
    await using requests = new HarnessRequests({
      host,
      settings,
      workspace,
      domains: () => [],
      emit: (event) => this.#box.emit(event),
      warn: noWords,
    });
    const parts = {
      host,
      settings,
      origins,
      workspace,
      store,
      conversation: this.#conversation,
      box: this.#box,
    };
    const asked = {
      requests,
      model,
      recorded: turn.model,
      provider: model.provider(),
      approver,
      keepGrant: noGrant,
      warn: noWords,
    };
    try {
      return await chatTurn({ ...parts, ...asked, show, signal }, turn.text);
    } catch (thrown) {
      if (!(thrown instanceof HarnessError) && !signal.aborted) throw thrown;
      this.#parts.failed(thrown);
      return undefined;
    }
  }

  /**
   * Takes back the part of the conversation that a person took back; before the first request here, that is part of an
   * earlier run.
   */
  takeBack(to: number): void {
    const { session } = this.#parts;
    if (this.#conversation === undefined)
      session.append(to === 0 ? { kind: "cleared" } : { kind: "rolled_back", to });
    else if (to === 0) this.#conversation.forget();
    else this.#conversation.takeBack(to);
  }

  /** Closes the box, because the layer with its changes goes away; the conversation stays. */
  leaveBox(): Promise<void> {
    return this.#box.close();
  }

  /** Lets other code continue the session. */
  async rest(): Promise<void> {
    await this.#box.close();
    await this.#index?.[Symbol.asyncDispose]();
    this.#index = undefined;
    this.#conversation = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#index?.[Symbol.asyncDispose]();
    } finally {
      await this.#box[Symbol.asyncDispose]();
    }
  }

  #now(): Settings {
    if (this.#settings === undefined) throw new TypeError("a box of a chat in which nothing was asked");
    return this.#settings;
  }

  #open(settings: Settings, resumed: boolean): Promise<Conversation> {
    const { host, origins, store, session, workspace } = this.#parts;
    this.#index = runIndex({
      host,
      settings: () => this.#now(),
      origins,
      workspace,
      session: session.id,
      box: this.#box.now,
    });
    const person: AskPerson = (asked, signal) => this.#person(asked, signal);
    const index = this.#index;
    const about = { host, store, session, resumed, settings, workspace, index, person, passing: true };
    return openConversation({ ...about, extensions: NO_EXTENSIONS });
  }
}

const noWords = (): void => undefined;
const noGrant = (): Promise<void> => Promise.resolve();
