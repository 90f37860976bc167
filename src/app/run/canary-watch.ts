import { CanaryTouched, EXIT } from "../../core/errors.ts";
import type { Emit } from "../../core/events.ts";
import type { OwnedBox } from "../../core/ports.ts";
import { clipped } from "../../core/wording.ts";
import { visibleLine } from "../../core/visible.ts";

interface Watch {
  readonly emit: Emit;
  /** Ends the run. */
  readonly end: (why: CanaryTouched) => void;
}

/** The box with canaries in it; a touch by any of its commands is reported, and ends the run. */
export async function withCanaries(box: OwnedBox, { emit, end }: Watch): Promise<OwnedBox> {
  const [{ plantCanaries }, { canaryBox }] = await Promise.all([
    import("../../boxes/canaries.ts"),
    import("../../boxes/canaries.ts"),
  ]);
  const canaries = await plantCanaries(box);
  return canaryBox(box, canaries, ({ canary, path, command, by }) => {
    const programs = by.map((words) => commandText(words));
    emit({ type: "canary", canary, path: visibleLine(path), command: commandText(command), by: programs });
    const way = programs.length === 0 ? "" : `, by ${programs.join(" > ")}`;
    end(new CanaryTouched(EXIT.failed, `A canary was touched: ${canary} (${visibleLine(path)})${way}`));
  });
}

const MOST = 200;

function commandText(words: readonly string[]): string {
  const line = visibleLine(words.join(" "));
  return clipped(line, MOST);
}
