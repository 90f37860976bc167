import { listBoxes, memoryOf, SHORT_ID } from "../../../docker/life/box-list.ts";
import { boxTable } from "../../../render/tty/boxes-lines.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { requireEngine, uid } from "../../../app/box-access.ts";
import { stderr, stdout } from "../../../render/tty/output.ts";

export class SandboxLs extends HarnessCommand {
  static override summary = "List your boxes: what they work on, and whether the run that owns them lives.";
  static override description =
    "With --json, one object per line. A box of a run that waits for a word is kept frozen: `parked`, with its session and for how long. Any other whose owner is gone is removed by the next run, or by `harness sandbox rm --dead`.";
  static override examples = ["harness sandbox ls", "harness sandbox ls --json"];

  async run(): Promise<void> {
    const { flags } = await this.parse(SandboxLs);
    const engine = await requireEngine();
    const boxes = await listBoxes(engine, uid());
    if (flags.json) {
      for (const { id, ...rest } of boxes) answerJson({ id: id.slice(0, SHORT_ID), ...rest });
      return;
    }
    if (boxes.length > 0) {
      const seen = { now: Date.now(), memory: await memoryOf(engine, boxes) };
      answer(boxTable(boxes, seen, stdout));
    } else if (!flags.quiet) stderr.write("no box is running\n");
  }
}
