import { sessionWords } from "../../app/known-values.ts";
import type { ChatController } from "../../app/run/chat-controller.ts";
import { PROVIDERS } from "../../config/setting-words.ts";
import { MODES } from "../../core/decision.ts";
import { PRESETS } from "../../core/grant.ts";
import { COMMANDS, type SlashName } from "./chat-commands.ts";

type Values = Readonly<Record<string, readonly string[]>>;

const FIXED: Values = {
  mode: MODES,
  provider: PROVIDERS,
  grant: ["always", ...PRESETS],
  diff: ["stat"],
  undo: ["files"],
};
const PATIENCE_MS = 5000;

/** What can stand behind the commands of a chat. Models are asked for beside the typing, and kept. */
export class SlashValues {
  readonly #chat: ChatController;
  #models: readonly string[] = [];
  #server = "";

  constructor(chat: ChatController) {
    this.#chat = chat;
  }

  /** By the command's name; what has to be looked up is when it is wanted. */
  of(added: readonly SlashName[] = []): Values {
    const models = (): readonly string[] => this.#modelsNow();
    const { host, workspace } = this.#chat;
    return {
      ...FIXED,
      help: [...COMMANDS.map(({ name }) => name), ...added.map(({ name }) => name), "exit"],
      get model() {
        return models();
      },
      get resume() {
        return sessionWords(host, workspace).map(({ value }) => value);
      },
    };
  }

  /** The list of the server that is asked now; the first time it is on its way, and the next tab has it. */
  #modelsNow(): readonly string[] {
    if (this.#server !== serverOf(this.#chat)) void this.look();
    return this.#models;
  }

  /** A server that gives no list completes nothing. */
  async look(): Promise<void> {
    this.#server = serverOf(this.#chat);
    this.#models = [];
    try {
      const { models } = await (await this.#chat.model()).list(AbortSignal.timeout(PATIENCE_MS));
      this.#models = models ?? [];
    } catch {
      // The command itself says why.
    }
  }
}

const serverOf = ({ settings }: ChatController): string => `${settings.provider} ${settings.base_url ?? ""}`;
