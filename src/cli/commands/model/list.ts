import { listModels, modelClient } from "../../../app/model-access.ts";
import { untilInterrupted } from "../../../app/interruption.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { modelTable } from "../../../render/setup-lines.ts";
import { stdout } from "../../../render/tty/output.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { configFor, settingFlags } from "../../settings.ts";

export class ModelList extends HarnessCommand {
  static override summary = "List the server's models, with what is assumed about each and why.";
  static override description =
    "Each value is followed by its source: user (your settings), probe (harness model probe), server, table (of model families) or guess. The star marks the model that a run uses. Ends with 5 if the server gives no list; what is assumed about the configured model is still shown.";
  static override flags = {
    model: settingFlags.model,
    provider: settingFlags.provider,
    "base-url": settingFlags["base-url"],
  };
  static override examples = ["harness model list", "harness model list --json --provider openai"];

  async run(): Promise<void> {
    const { flags } = await this.parse(ModelList);
    const { settings } = await configFor(flags);
    const client = modelClient(this.host, settings);
    const { listing, rows } = await untilInterrupted(
      (signal) => listModels(client, settings.chat_model, signal),
      "harness model list",
    );
    if (flags.json) for (const { assumed, ...row } of rows) answerJson({ ...row, ...assumed });
    else answer(modelTable(rows, stdout));
    if (listing.models === null)
      throw new HarnessError(
        EXIT.model,
        `no list of models from ${client.server}: ${listing.reason}`,
        "harness doctor",
      );
  }
}
