import { Flags } from "@oclif/core";
import { hasModels, tearDown } from "../../app/setup-steps.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { keptEnvironments } from "../../render/environment-lines.ts";
import { stderr } from "../../render/tty/output.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { confirm } from "../terminal.ts";
import { settingFlags } from "../settings.ts";

export class Teardown extends HarnessCommand {
  static override summary = "Stop the sidecars and remove your sandboxes (what ./stop.sh does).";
  static override hidden = true;
  static override flags = {
    purge: Flags.boolean({
      description:
        "after asking, also remove the images, the environments, the search index and the models of the sidecars",
    }),
    yes: Flags.boolean({ description: "do not ask" }),
    engine: settingFlags.engine,
  };
  static override examples = ["harness teardown", "harness teardown --purge"];

  async run(): Promise<void> {
    const { flags } = await this.parse(Teardown);
    const { purge } = flags;
    if (purge) await requireConsent(flags.yes);
    const models = purge && (flags.yes || ((await hasModels(this.host)) && (await confirm(MODELS, false))));
    const torn = await tearDown(this.host, { images: purge, volumes: purge, models });
    const { boxes, sidecars, images, environments } = torn;
    const made = environments.removed.map((id) => `environment ${id}`);
    if (flags.json) answerJson({ boxes, sidecars, images, environments });
    else {
      answer(describe(boxes, sidecars.containers, [...sidecars.volumes, ...images, ...made]));
      if (environments.kept.length > 0) answer(keptEnvironments(environments.kept));
    }
    for (const { name, reason } of sidecars.kept) stderr.write(`kept ${name}: ${reason}\n`);
    if (sidecars.kept.length > 0) process.exitCode = EXIT.failed;
  }
}

const MODELS = "Also remove the models of the Ollama sidecar? Getting them back means downloading gigabytes.";

async function requireConsent(yes: boolean): Promise<void> {
  const question =
    "Remove the sandbox images, the environments and the sidecar's search index? Sessions stay.";
  if (yes || (await confirm(question, false))) return;
  const remedy = process.stdin.isTTY ? "./stop.sh stops without removing them" : "./stop.sh --purge --yes";
  throw new HarnessError(EXIT.usage, "nothing was purged: the question was not answered with yes", remedy);
}

function describe(boxes: number, sidecars: readonly string[], purged: readonly string[]): string {
  const stopped = sidecars.length === 0 ? "no sidecar was running" : `stopped ${sidecars.join(", ")}`;
  const gone = purged.length === 0 ? "" : `\nremoved ${purged.join(", ")}`;
  return `${stopped}; removed ${boxes} sandbox${boxes === 1 ? "" : "es"}${gone}`;
}
