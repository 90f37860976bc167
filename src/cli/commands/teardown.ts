import { Flags } from "@oclif/core";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { downSidecars } from "../../docker/compose/compose-down.ts";
import { removeBoxes, removeImages } from "../../docker/remove-all.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { confirm } from "../terminal.ts";
import { packageRoot } from "../../app/host.ts";
import { readCompose } from "../../app/setup-context.ts";
import { requireEngine, uid } from "../../app/box-access.ts";
import { stderr } from "../../render/tty/output.ts";

export class Teardown extends HarnessCommand {
  static override summary = "Stop the sidecars and remove this user's sandboxes (what ./stop.sh does).";
  static override hidden = true;
  static override flags = {
    purge: Flags.boolean({ description: "also remove images and the sidecars' volumes" }),
    yes: Flags.boolean({ description: "do not ask" }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Teardown);
    if (flags.purge) await agree(flags.yes);
    const engine = await requireEngine();
    const compose = await readCompose(packageRoot);
    const boxes = await removeBoxes(engine, uid());
    const sidecars = await downSidecars(engine.api, compose.name, { volumes: flags.purge });
    const pulled = Object.values(compose.services).map(({ image }) => image);
    const images = flags.purge ? await removeImages(engine, pulled) : [];
    if (flags.json) answerJson({ boxes, sidecars, images });
    else answer(describe(boxes, sidecars.containers, [...sidecars.volumes, ...images]));
    for (const { name, reason } of sidecars.kept) stderr.write(`kept ${name}: ${reason}\n`);
    if (sidecars.kept.length > 0) process.exitCode = EXIT.failed;
  }
}

async function agree(yes: boolean): Promise<void> {
  const question =
    "Remove the sandbox images and the sidecars' data (search index, pulled models)? Sessions stay.";
  if (yes || (await confirm(question, false))) return;
  const remedy = process.stdin.isTTY ? "./stop.sh stops without removing them" : "./stop.sh --purge --yes";
  throw new HarnessError(EXIT.usage, "nothing was purged: it was not agreed to", remedy);
}

function describe(boxes: number, sidecars: readonly string[], purged: readonly string[]): string {
  const stopped = sidecars.length === 0 ? "no sidecar was running" : `stopped ${sidecars.join(", ")}`;
  const gone = purged.length === 0 ? "" : `\nremoved ${purged.join(", ")}`;
  return `${stopped}; removed ${boxes} sandbox${boxes === 1 ? "" : "es"}${gone}`;
}
