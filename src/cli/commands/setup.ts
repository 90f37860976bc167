import { Flags } from "@oclif/core";
import { setupTable } from "../../render/setup-lines.ts";
import { HarnessCommand } from "../command.ts";
import { choose, confirm, isTerminal } from "../terminal.ts";
import { untilInterrupted } from "../../app/interruption.ts";
import { packageRoot } from "../../app/host.ts";
import { untrustedIn } from "../../app/project/project-trust.ts";
import { noteTo } from "../../app/stderr-messages.ts";
import { configFor, settingFlags, workspaceOf } from "../settings.ts";
import { modelStep } from "../../app/setup-model.ts";
import {
  describeEngine,
  doneStep,
  engineStep,
  imageStep,
  INSTEAD,
  type SetupContext,
  sidecarStep,
  replacedStep,
  SetupSteps,
} from "../../app/setup-steps.ts";
import { stderr } from "../../render/tty/output.ts";

export class Setup extends HarnessCommand {
  static override summary =
    "Set up the engine, image, sidecars and model (what ./start.sh does after the build).";
  static override description =
    "If no Ollama answers and none is installed, offers one as a container that only this machine can reach. Then offers a chat model that fits memory and processor, with the sizes of the downloads, and a model for search. Your choice is written to your settings as chat_model, and you are not asked again. An interrupted download continues at the next start. Without a terminal and without --yes, nothing is downloaded, and the step says what to type.";
  static override hidden = true;
  static override flags = {
    ...settingFlags,
    "no-install": Flags.boolean({ description: "install nothing, and say what to type instead" }),
    "no-sidecars": Flags.boolean({ description: "start no sidecar: no Qdrant, no Ollama" }),
    yes: Flags.boolean({
      description: "answer yes to offers: the Ollama sidecar, the first model that fits, its download",
    }),
    "no-model": Flags.boolean({ description: "look for no model, because the next command needs none" }),
    brief: Flags.boolean({ description: "print no closing table, because another command follows" }),
  };
  static override examples = ["harness setup", "harness setup --yes --no-sidecars"];

  async run(): Promise<void> {
    const { flags } = await this.parse(Setup);
    const config = await configFor(flags);
    await untilInterrupted(async (signal) => {
      const steps = new SetupSteps(flags.quiet, signal);
      const context: SetupContext = {
        host: this.host,
        root: packageRoot,
        workspace: workspaceOf(flags),
        config,
        signal,
        mayInstall: !flags["no-install"],
        yes: flags.yes,
        attended: isTerminal(),
        onLine: steps.progress,
        onAdvance: steps.advance,
        confirm: (question) => steps.asking(() => confirm(question, flags.yes, signal)),
        choose: (question, rows) => steps.asking(() => choose(question, rows, { yes: flags.yes, signal })),
      };
      await runSteps(context, steps, { sidecars: !flags["no-sidecars"], model: !flags["no-model"] });
      if (flags.quiet || flags.brief) return;
      stderr.write(setupTable(steps.taken, stderr));
      const untrusted = await untrustedIn(this.host, context.workspace);
      if (untrusted !== undefined) noteTo(false)(untrusted.text);
    });
  }
}

interface SetupParts {
  readonly sidecars: boolean;
  readonly model: boolean;
}

async function runSteps(
  context: SetupContext,
  steps: SetupSteps,
  { sidecars, model }: SetupParts,
): Promise<void> {
  const engine = await steps.run(
    "engine",
    () => engineStep(context),
    (found) => doneStep(describeEngine(found)),
  );
  await steps.run(
    "image",
    () => imageStep(engine, context),
    (result) => result,
  );
  const store = (): ReturnType<typeof sidecarStep> =>
    sidecars
      ? sidecarStep("qdrant", engine, context)
      : Promise.resolve(replacedStep(INSTEAD.qdrant, "--no-sidecars was given"));
  await steps.run("search", store, (result) => result);
  if (!model) return;
  await steps.run(
    "model",
    () => modelStep(engine, sidecars, context),
    (result) => result,
  );
}
