import { Flags } from "@oclif/core";
import {
  askPlaces,
  changesFor,
  commandsFor,
  LOCAL_PROVIDERS,
  overwrites,
  ownSettings,
  rankedOffers,
  rowOf,
  type ServerOffer,
  serverPlaces,
  type SettingWrite,
  wantedOffers,
  writeChanges,
} from "../../app/first-run.ts";
import { untilInterrupted } from "../../app/interruption.ts";
import { envNameOf } from "../../config/load-config.ts";
import { EXIT } from "../../core/errors.ts";
import { stderr } from "../../render/tty/output.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { choose, confirm, isTerminal } from "../terminal.ts";

export class Init extends HarnessCommand {
  static override summary = "Find a model server on this machine, and write it to your settings.";
  static override description =
    "Asks only the usual addresses of this machine (Ollama's, also from OLLAMA_HOST; LM Studio 1234; llama-server 8080; vLLM 8000). Offers the chat models of the servers that answer, those that fit the memory first. After a question, writes provider, chat_model and, if it is not the usual one, base_url. Settings that you already have are replaced only after that question; with --yes they stay, and the output says so. Without a terminal or with --json, and without --yes, prints what it would write and ends with 2. Ends with 5 if it finds no chat model.";
  static override flags = {
    provider: Flags.option({ options: LOCAL_PROVIDERS, description: "ask only this server" })(),
    model: Flags.string({ description: "use this model", helpValue: "NAME" }),
    yes: Flags.boolean({ description: "take the first offer and write it without asking" }),
  };
  static override examples = ["harness init", "harness init --yes --provider ollama --model qwen3:8b"];

  async run(): Promise<void> {
    const { flags } = await this.parse(Init);
    await untilInterrupted(async (signal) => {
      const own = await ownSettings(this.host);
      const answers = await askPlaces(serverPlaces(this.host, own, flags.provider), signal);
      const offers = wantedOffers(rankedOffers(answers, own), answers, flags.model);
      const rows = offers.map((offer) => rowOf(offer));
      const at =
        offers.length === 1 || !this.#isThere(flags)
          ? 0
          : await choose("These chat models are on this machine:", rows, { yes: flags.yes, signal });
      const chosen = at === null ? undefined : offers[at];
      if (chosen === undefined) return answer("nothing was written");
      await this.#settle(chosen, changesFor(chosen, own), { ...flags, signal });
    }, "harness init");
  }

  /** A caller that wants JSON is not a person to ask. */
  #isThere({ json }: Pick<InitRequest, "json">): boolean {
    return isTerminal() && !json;
  }

  async #settle(offer: ServerOffer, changes: readonly SettingWrite[], request: InitRequest): Promise<void> {
    const [file] = this.host.places.configFiles;
    const kept = request.yes && changes.some(overwrites);
    const unasked = !request.yes && !this.#isThere(request);
    if (!request.json && changes.length > 0)
      answer([`${offer.model} at ${offer.place.address}; for ${file}:`, ...changes.map(lineOf)].join("\n"));
    const write =
      changes.length > 0 && !kept && !unasked && (await confirm("Write this?", request.yes, request.signal));
    if (write) await writeChanges(file, changes);
    if (unasked && changes.length > 0) process.exitCode = EXIT.usage;
    if (request.json) answerJson(jsonOf(offer, changes, { file, written: write }));
    else answer(endOf(changes, { kept, unasked, write }));
    for (const variable of KEYS.map((key) => envNameOf(key)))
      if (this.host.env[variable]) stderr.write(`note: ${variable} is set and overrides the file\n`);
  }
}

interface InitRequest {
  readonly yes: boolean;
  readonly json: boolean;
  readonly signal: AbortSignal;
}

const KEYS = ["provider", "chat_model", "base_url"] as const;

const lineOf = (change: SettingWrite): string =>
  `  ${change.key} = ${change.value}${overwrites(change) ? `   (now ${change.before})` : ""}`;

function endOf(
  changes: readonly SettingWrite[],
  { kept, unasked, write }: { readonly kept: boolean; readonly unasked: boolean; readonly write: boolean },
): string {
  if (changes.length === 0) return "your settings already name it; next: harness doctor";
  if (write) return "written; next: harness doctor";
  if (kept) {
    const own = changes.filter(overwrites);
    const names = own.map(({ key, before }) => `${key} ${before}`).join(", ");
    return `nothing was written: your own settings stay (${names}); to replace them: ${commandsFor(changes)}`;
  }
  return unasked
    ? "nothing was written: there is no terminal to ask on; next: harness init --yes"
    : "nothing was written";
}

const jsonOf = (
  { place, model }: ServerOffer,
  changes: readonly SettingWrite[],
  { file, written }: { readonly file: string; readonly written: boolean },
) => ({
  provider: place.provider,
  chat_model: model,
  base_url: place.usual ? null : place.address,
  file,
  written,
  changes: changes.map(({ key, value, before }) => ({ key, value, before: before ?? null })),
});
