import { EXIT, HarnessError } from "../../../core/errors.ts";
import { fullName } from "../../../models/ollama/ollama-server.ts";
import { type ModelRow, modelTable } from "../../../render/tty/models-lines.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { untilInterrupted } from "../../../app/run/interruption.ts";
import { modelClient } from "../../../app/model-access.ts";
import { configFor, settingFlags } from "../../settings.ts";
import { stdout } from "../../../render/tty/output.ts";

export class ModelList extends HarnessCommand {
  static override summary = "Show the models of the server, and what is believed of them and why.";
  static override description =
    "Behind each value stands where it comes from: user (your settings), probe (harness model probe), server, table (of families), guess. The star marks the model of a run. Ends with 5 when the server gives no list; what is believed of the configured model is shown all the same.";
  static override flags = {
    model: settingFlags.model,
    provider: settingFlags.provider,
    "base-url": settingFlags["base-url"],
  };
  static override examples = ["harness model list", "harness model list --json --provider openai"];

  async run(): Promise<void> {
    const { flags } = await this.parse(ModelList);
    const { settings } = await configFor(flags);
    const seat = modelClient(settings);
    const { listing, rows } = await untilInterrupted(async (signal) => {
      const listing = await seat.list(signal);
      const rows = await Promise.all(
        withConfigured(listing.models, settings.chat_model).map(async (row) => ({
          ...row,
          believed: await seat.capabilities(row.model, signal),
        })),
      );
      return { listing, rows };
    }, "harness model list");
    if (flags.json) for (const { believed, ...row } of rows) answerJson({ ...row, ...believed });
    else answer(modelTable(rows, stdout));
    if (listing.models === null)
      throw new HarnessError(
        EXIT.model,
        `no list of models from ${seat.server}: ${listing.reason}`,
        "harness doctor",
      );
  }
}

type Named = Omit<ModelRow, "believed">;

/** The configured model first, whether the server has it or not. */
function withConfigured(models: readonly string[] | null, configured: string): readonly Named[] {
  const found = models?.find((model) => fullName(model) === fullName(configured));
  const present = models === null ? null : found !== undefined;
  const others = (models ?? []).filter((model) => model !== found);
  return [
    { model: found ?? configured, configured: true, present },
    ...others.map((model) => ({ model, configured: false, present: true })),
  ];
}
