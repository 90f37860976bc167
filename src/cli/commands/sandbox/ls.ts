import { boxTable } from "../../../render/environment-lines.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { ownBoxes, shortId } from "../../../app/boxes/own-boxes.ts";
import { stderr, stdout } from "../../../render/tty/output.ts";
import { settingFlags } from "../../settings.ts";

export class SandboxLs extends HarnessCommand {
  static override summary =
    "List your boxes, what they work on, and whether the run that owns them is alive.";
  static override description =
    "The box of a parked run is kept frozen; it is listed as `parked`, with its session and for how long it is kept. Any other box whose owner is gone is removed by the next run or by `harness sandbox rm --dead`. With --json, prints one object per line.";
  static override flags = { engine: settingFlags.engine };
  static override examples = ["harness sandbox ls", "harness sandbox ls --json"];

  async run(): Promise<void> {
    const { flags } = await this.parse(SandboxLs);
    const { boxes, memory } = await ownBoxes(this.host, { memory: !flags.json });
    if (flags.json) {
      for (const { id, ...rest } of boxes) answerJson({ id: shortId(id), ...rest });
      return;
    }
    if (memory !== undefined) answer(boxTable(boxes, { now: Date.now(), memory }, stdout));
    else if (!flags.quiet) stderr.write("no box is running\n");
  }
}
