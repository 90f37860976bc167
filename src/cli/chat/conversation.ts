import type { Seat } from "../../agent/agent-context.ts";
import { PromptSize } from "../../agent/context/prompt-size.ts";
import type { Memory } from "../../agent/memory.ts";
import { type LazyBox, lazyBox } from "../../app/lazy-box.ts";
import { giveUpFrozen } from "../../app/run-task.ts";
import { briefingFrom, type SessionPrompt, sessionPrompt } from "../../app/session-prompt.ts";
import { type Lasting, lastingOf } from "../../app/session-state.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import type { Usage } from "../../core/messages.ts";
import type { Box, Index, OwnedBox } from "../../core/ports.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import { NO_USAGE, sumUsage } from "../../models/usage.ts";

/** One session that a chat goes on with. */
export class Talk {
  readonly session: Session;
  readonly lasting: Lasting;
  readonly prompt: SessionPrompt;
  readonly resumed: boolean;
  /** Of all its requests, earlier ones too. */
  usage: Usage;
  #size: { readonly model: string; readonly size: PromptSize } | undefined;

  constructor(given: Pick<Talk, "session" | "lasting" | "prompt" | "resumed">) {
    this.session = given.session;
    this.lasting = given.lasting;
    this.prompt = given.prompt;
    this.resumed = given.resumed;
    const turns = given.session.records().flatMap((each) => (each.kind === "turn" ? [each.result] : []));
    this.usage = turns.reduce((sum, { usage }) => sumUsage(sum, usage), NO_USAGE);
  }

  get memory(): Memory {
    return this.lasting.memory;
  }

  spend(usage: Usage): void {
    this.usage = sumUsage(this.usage, usage);
  }

  /** What is learnt of how a model counts stays as long as it is asked. */
  sizeFor(model: string): PromptSize {
    if (this.#size?.model !== model) this.#size = { model, size: new PromptSize(model, this.lasting.tools) };
    return this.#size.size;
  }
}

export interface TalkParts {
  readonly store: SessionStore;
  readonly session: Session;
  readonly resumed: boolean;
  readonly settings: Settings;
  readonly workspace: string;
  /** What finds code, when it is asked. */
  readonly index: Index;
}

export async function talkOver(parts: TalkParts): Promise<Talk> {
  const { store, session, resumed, settings, workspace, index } = parts;
  const prompt = await sessionPrompt(settings, workspace);
  const timeoutMs = settings.timeout;
  if (resumed) await giveUpFrozen(session);
  const lasting = lastingOf({ session, store, workspace, timeoutMs, prompt: prompt.text, index });
  return new Talk({ session, lasting, prompt, resumed });
}

const REMEDY = "say it again: a new box starts";

interface Held {
  readonly box: LazyBox;
  readonly talk: Talk;
  readonly briefing: Seat["briefing"];
}

type BoxStart = (signal: AbortSignal, session: string) => Promise<OwnedBox>;

/** The box of a chat: one for all its requests, until it is lost or must be another one. */
export class ChatBox implements AsyncDisposable {
  readonly #start: BoxStart;
  readonly #shared: boolean;
  readonly #ending = new AbortController();
  #held: Held | undefined;
  /** Who is told that it is ready. */
  onReady: Parameters<typeof lazyBox>[1] = () => undefined;

  /** `shared`: one box serves any session. */
  constructor(start: BoxStart, shared: boolean) {
    this.#start = start;
    this.#shared = shared;
  }

  /** For the next request; one that could not start, or is no more, is tried anew. */
  async for(talk: Talk): Promise<Omit<Held, "talk">> {
    if (this.#held?.box.walls.aborted === true) await this.close();
    if (this.#held?.talk === talk) return this.#held;
    if (!this.#shared) await this.close();
    const start = (signal: AbortSignal): Promise<OwnedBox> => this.#start(signal, talk.session.id);
    const box = this.#held?.box ?? lazyBox(start, (ms, ready) => this.onReady(ms, ready), { remedy: REMEDY });
    const { history } = talk.memory;
    const briefing = briefingFrom(box, talk.prompt, { history, signal: this.#ending.signal });
    this.#held = { box, talk, briefing };
    return this.#held;
  }

  /** That of the request that is worked on. */
  readonly now = (): Promise<Box> =>
    this.#held?.box.box() ?? Promise.reject(new HarnessError(EXIT.sandbox, "the chat has no box", REMEDY));

  async close(): Promise<void> {
    const box = this.#held?.box;
    this.#held = undefined;
    await box?.[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new Error("the chat has ended"));
    await this.close();
  }
}
