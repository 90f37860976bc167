import { Args, Flags } from "@oclif/core";
import {
  environmentCount,
  type RemovedBoxes,
  removeOwnBoxes,
  shortId,
} from "../../../app/boxes/own-boxes.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { stderr } from "../../../render/tty/output.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { settingFlags } from "../../settings.ts";

export class SandboxRm extends HarnessCommand {
  static override summary = "Remove your boxes: those you name, all, or those whose run is gone.";
  static override description =
    "You may shorten an ID to any beginning that fits only one box. A run whose box is removed ends and says so; a parked run continues in a new box. With --json, prints one object per removed box.";
  static override strict = false;
  static override args = {
    id: Args.string({ description: "box ID, as shown by `harness sandbox ls`", ignoreStdin: true }),
  };
  static override flags = {
    engine: settingFlags.engine,
    all: Flags.boolean({ description: "remove all your boxes, including those in use" }),
    dead: Flags.boolean({ description: "remove the boxes of runs that are gone, and their leftovers" }),
  };
  static override examples = [
    "harness sandbox rm 3f2a",
    "harness sandbox rm --dead",
    "harness sandbox rm --all",
  ];

  async run(): Promise<void> {
    const { flags, argv } = await this.parse(SandboxRm);
    const ids = argv.map(String);
    if ([ids.length > 0, flags.all, flags.dead].filter(Boolean).length !== 1)
      throw new HarnessError(EXIT.usage, "give exactly one of: box IDs, --all, --dead", "harness sandbox ls");
    const which = flags.all ? "all" : flags.dead ? "dead" : ids;
    const { removed, failure, sweep } = await removeOwnBoxes(this.host, which);
    for (const box of removed) report(box, flags.json);
    if (removed.length === 0 && !flags.quiet && !flags.json) stderr.write("no box was removed\n");
    if (failure !== undefined) throw failure.reason;
    if (ids.length > 0) return;
    const { kept, failed } = await sweep();
    for (const { kind, id, reason } of [...failed, ...(flags.quiet ? [] : kept)])
      stderr.write(`${kind} ${id} was not removed: ${reason}\n`);
    const environments = flags.all && !flags.quiet ? await environmentCount(this.host) : 0;
    if (environments > 0)
      stderr.write(`environments stay: ${environments} (harness env list, harness env rm --all)\n`);
  }
}

function report({ id, workspace }: RemovedBoxes["removed"][number], json: boolean): void {
  if (json) answerJson({ id: shortId(id), workspace });
  else answer(shortId(id));
}
