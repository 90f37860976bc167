import { Args, Flags } from "@oclif/core";
import { placesFrom } from "../../../config/places.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { type ListedBox, listBoxes, pickBoxes, removeBox, SHORT_ID } from "../../../docker/life/box-list.ts";
import { reap } from "../../../docker/life/reap.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { dropFrozen, requireEngine, uid } from "../../../app/box-access.ts";
import { stderr } from "../../../render/tty/output.ts";

export class SandboxRm extends HarnessCommand {
  static override summary = "Remove boxes of yours: those named, all, or those whose run is gone.";
  static override description =
    "An id may be shortened to any beginning that fits one box. A run whose box is removed ends and says so; one that waits for a word goes on in a new one. With --json, one object per removed box.";
  static override strict = false;
  static override args = { id: Args.string({ description: "a box, as `harness sandbox ls` shows it" }) };
  static override flags = {
    all: Flags.boolean({ description: "every box of yours, those in use too" }),
    dead: Flags.boolean({ description: "the boxes of runs that are gone, and their leftovers" }),
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
      throw new HarnessError(
        EXIT.usage,
        "say which boxes: ids, --all, or --dead, and one of these only",
        "harness sandbox ls",
      );
    const engine = await requireEngine();
    const boxes = await listBoxes(engine, uid());
    const chosen = flags.all
      ? boxes
      : flags.dead
        ? boxes.filter(({ owner, parked }) => owner?.alive === false && parked === null)
        : pickBoxes(boxes, ids);
    const ended = await Promise.allSettled(
      chosen.map(async ({ id, parked }) => {
        await removeBox(engine, id);
        if (parked !== null) await dropFrozen(parked.session);
      }),
    );
    const removed = chosen.filter((_, index) => ended[index]?.status === "fulfilled");
    for (const box of removed) report(box, flags.json);
    if (removed.length === 0 && !flags.quiet && !flags.json) stderr.write("no box was removed\n");
    const failure = ended.find((one) => one.status === "rejected");
    if (failure !== undefined) throw failure.reason;
    if (ids.length > 0) return;
    const { kept, failed } = await reap(engine, { uid: uid(), stateDir: placesFrom(process.env).state });
    for (const { kind, id, reason } of [...failed, ...(flags.quiet ? [] : kept)])
      stderr.write(`${kind} ${id} is left: ${reason}\n`);
  }
}

function report({ id, workspace }: ListedBox, json: boolean): void {
  if (json) answerJson({ id: id.slice(0, SHORT_ID), workspace });
  else answer(id.slice(0, SHORT_ID));
}
