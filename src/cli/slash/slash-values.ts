import { sessionWords } from "../../app/known-values.ts";
import type { ChatController } from "../../app/run/chat-controller.ts";
import { PROVIDERS } from "../../config/setting-words.ts";
import { MODES } from "../../core/decision.ts";
import { PRESETS } from "../../core/network.ts";
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

/** Values that can follow the commands of a chat. Models are listed in the background, and kept. */
export class SlashValues {
  readonly #chat: ChatController;
  #models: readonly string[] = [];
  #server = "";

  constructor(chat: ChatController) {
    this.#chat = chat;
  }

  /** Keyed by command; values that need a look-up are found when they are needed. */
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

  /** The model list of the current server. At first it is only requested, and ready for the next tab. */
  #modelsNow(): readonly string[] {
    if (this.#server !== serverOf(this.#chat)) void this.look();
    return this.#models;
  }

  /** A server without a list completes nothing. */
  async look(): Promise<void> {
    this.#server = serverOf(this.#chat);
    this.#models = [];
    try {
      const { models } = await (await this.#chat.model()).list(AbortSignal.timeout(PATIENCE_MS));
      this.#models = models ?? [];
    } catch {
      // The command itself reports the reason.
    }
  }
}

const serverOf = ({ settings }: ChatController): string => `${settings.provider} ${settings.base_url ?? ""}`;
