import { Args } from "@oclif/core";
import { modelClient, type ProbedModel, probeModel } from "../../../app/model-access.ts";
import { untilInterrupted } from "../../../app/interruption.ts";
import { noteTo } from "../../../app/stderr-messages.ts";
import { EXIT } from "../../../core/errors.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { configFor, settingFlags } from "../../settings.ts";

export class ModelProbe extends HarnessCommand {
  static override summary = "Test whether a model can call tools, and remember the result.";
  static override description =
    "Asks the model for real calls (nothing is run): one, two in one reply, one with braces and newlines in a string, and an answer that only quotes JSON. What works is kept for this model, tag and server version, and runs use it. If not all calls get through natively, calls written as text and calls held to a schema are measured too, and the best form is kept. Ends with 0 if calls get through in any form; with 5 if they do not, or if the model does not answer.";
  static override args = {
    model: Args.string({ description: "model to test (default: the configured model)", ignoreStdin: true }),
  };
  static override flags = {
    model: settingFlags.model,
    provider: settingFlags.provider,
    "base-url": settingFlags["base-url"],
  };
  static override examples = ["harness model probe", "harness model probe qwen3-coder:30b --json"];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ModelProbe);
    const { settings } = await configFor({ ...flags, model: args.model ?? flags.model });
    const { chat_model: model } = settings;
    const client = modelClient(this.host, settings);
    const note = noteTo(flags.quiet);
    const probed = await untilInterrupted(
      (signal) => probeModel(this.host, client, model, note, signal),
      "harness model probe",
    );
    if (flags.json) answerJson(probed);
    else answer(summary(probed));
    process.exitCode = probed.usable ? EXIT.done : EXIT.model;
  }
}

const MEANINGS = {
  native: "native calls work and are used",
  text: "calls written as text work better than native ones, and are used",
  held: "calls work best if replies are held to a schema, so they are",
} as const;

function summary({ model, server, version, calls, shares, checks, usable }: ProbedModel): string {
  const at = version === "" ? server : `${server} (${version})`;
  const rows = Object.entries(checks).map(([name, passed]) => `${passed ? "ok  " : "fail"}  ${name}`);
  const measured = Object.entries(shares).map(([form, { valid, asked }]) => `${form} ${valid} of ${asked}`);
  const meaning = usable ? MEANINGS[calls] : "no call gets through; choose another model";
  return [`${model} at ${at}`, ...rows, `calls that got through: ${measured.join(", ")}`, meaning].join("\n");
}
