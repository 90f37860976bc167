import { listModels, modelClient } from "../../../app/model-access.ts";
import { untilInterrupted } from "../../../app/interruption.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { modelTable } from "../../../render/lists/models-lines.ts";
import { stdout } from "../../../render/tty/output.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { configFor, settingFlags } from "../../settings.ts";

export class ModelList extends HarnessCommand {
  static override summary = "Show the models of the server, and what is assumed of them and why.";
  static override description =
    "Behind each value stands where it comes from: user (your settings), probe (harness model probe), server, table (of families), guess. The star marks the model of a run. Ends with 5 when the server gives no list; what is assumed of the configured model is shown all the same.";
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
