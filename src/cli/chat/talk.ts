import { giveUpFrozen } from "../run/given-up.ts";
import type { Memory } from "../../agent/memory.ts";
import { PromptSize } from "../../agent/context/size.ts";
import type { Settings } from "../../config/schema.ts";
import type { Usage } from "../../core/messages.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import { NO_USAGE, sumUsage } from "../../models/accounting/usage.ts";
import { type Lasting, lastingOf } from "../run/lasting.ts";
import { type SessionPrompt, sessionPrompt } from "../run/system-prompt.ts";

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
}

export async function talkOver({ store, session, resumed, settings, workspace }: TalkParts): Promise<Talk> {
  const prompt = await sessionPrompt(settings, workspace);
  const timeoutMs = settings.timeout;
  if (resumed) await giveUpFrozen(session);
  const lasting = lastingOf({ session, store, workspace, timeoutMs, prompt: prompt.text });
  return new Talk({ session, lasting, prompt, resumed });
}
