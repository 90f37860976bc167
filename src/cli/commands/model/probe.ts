import { Args } from "@oclif/core";
import { placesFrom } from "../../../config/places.ts";
import { formatDuration } from "../../../core/bounds.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { probeCalls, type ProbeResult } from "../../../models/capabilities/probe-model.ts";
import { type ProbeRecord, writeProbe } from "../../../models/capabilities/probe-records.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { untilInterrupted } from "../../../app/run/interruption.ts";
import { type ModelClient, modelClient } from "../../../app/model-access.ts";
import { noteTo } from "../../../app/stderr-messages.ts";
import { configFor, settingFlags } from "../../settings.ts";

export class ModelProbe extends HarnessCommand {
  static override summary = "Try out whether a model calls tools, and remember it.";
  static override description =
    "Asks the model for real calls (nothing is run): one, two in one reply, one with braces and newlines in a string, and an answer that only quotes JSON. What works is kept for this model, tag and server version, and runs go by it. Ends with 0 when calls get through, natively or written as text; with 5 when they do not, or the model does not answer.";
  static override args = {
    model: Args.string({ description: "the model; the configured one when left out" }),
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
    const seat = modelClient(settings);
    const note = noteTo(flags.quiet || flags.json);
    const { record, result } = await untilInterrupted(async (signal) => {
      const result = await probe(seat, model, signal, note);
      const { checks, native } = result;
      const at = new Date().toISOString();
      const record = { ...(await seat.subject(model, signal)), native, checks, at };
      await keep(record);
      return { record, result };
    }, "harness model probe");
    if (flags.json) answerJson({ ...record, usable: result.usable });
    else answer(summary(record, result.usable));
    process.exitCode = result.usable ? EXIT.done : EXIT.model;
  }
}

type Made = Extract<ProbeResult, { readonly kind: "made" }>;

async function probe(
  seat: ModelClient,
  model: string,
  signal: AbortSignal,
  note: (text: string) => void,
): Promise<Made> {
  note(`asking ${model} at ${seat.server}; loading it may take minutes`);
  const result = await probeCalls({
    model,
    native: seat.provider(true),
    written: seat.provider(false),
    signal,
    onWait: (ms, reason) => note(`asking again in ${formatDuration(ms)}: ${reason}`),
    onCheck: (name, passed) => note(`${name}: ${passed ? "works" : "does not work"}`),
  });
  if (result.kind === "made") return result;
  signal.throwIfAborted();
  const { reason, remedy } = result.failure;
  throw new HarnessError(EXIT.model, `${model}: ${reason}`, remedy);
}

async function keep(record: ProbeRecord): Promise<void> {
  const { state } = placesFrom(process.env);
  try {
    await writeProbe(state, record);
  } catch (thrown) {
    throw new HarnessError(EXIT.failed, `${state}: the probe could not be kept`, `ls -ld ${state}`, thrown);
  }
}

function summary({ model, server, version, native, checks }: ProbeRecord, usable: boolean): string {
  const at = version === "" ? server : `${server} (${version})`;
  const rows = Object.entries(checks).map(([name, passed]) => `${passed ? "ok  " : "fail"}  ${name}`);
  const meaning = native
    ? "native calls work and are used"
    : usable
      ? "native calls do not work; calls are read from the model's text"
      : "no call gets through; choose another model";
  return [`${model} at ${at}`, ...rows, meaning].join("\n");
}
