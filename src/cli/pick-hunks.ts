import { createInterface } from "node:readline/promises";
import { fileDiffs } from "../render/tty/file-diffs.ts";
import { stderr } from "../render/tty/output.ts";
import type { CheckpointStore } from "../sessions/checkpoints/checkpoint-store.ts";
import type { Op } from "../sessions/checkpoints/undo-plan.ts";
import type { Prepared } from "../sessions/apply-layer.ts";
import { partsOf, standing } from "../sessions/layer-parts.ts";

type Answer = "yes" | "no" | "all" | "quit";

/** Asks one question; what is no answer to it is asked again. The end of the input is `quit`. */
export type AskPart = () => Promise<Answer>;

const QUESTION =
  "Apply this part? [y,n,a,q] (yes, no, all: this and what follows, quit: neither this nor what follows) ";
const ANSWERS: Readonly<Record<string, Answer>> = { y: "yes", n: "no", a: "all", q: "quit" };

/** Part by part, what is wanted of what would be moved. */
export async function pickParts(
  prepared: Prepared,
  store: CheckpointStore,
  { show, ask }: { readonly show: (text: string) => void; readonly ask: AskPart },
): Promise<Prepared> {
  const ops: Op[] = [];
  const partial = new Set<string>();
  let rest: "all" | "quit" | undefined;
  for (const op of prepared.ops) {
    if (op.from === op.to) {
      ops.push(op);
      continue;
    }
    const { shown, only } = partsOf(op, store.packs);
    const wanted: boolean[] = [];
    for (const part of shown) {
      if (rest === undefined) {
        show(fileDiffs([part], stderr));
        const answer = await ask();
        if (answer === "all" || answer === "quit") rest = answer;
        wanted.push(answer === "yes" || answer === "all");
      } else wanted.push(rest === "all");
    }
    const chosen = only(wanted);
    if (chosen !== undefined) ops.push(chosen);
    if (chosen !== undefined && wanted.includes(false)) partial.add(op.path);
  }
  return { ...prepared, ops: standing(ops, prepared.ops), partial };
}

/** On this terminal. */
export async function askOnTerminal(): Promise<Answer> {
  const lines = createInterface({ input: process.stdin, output: stderr.editor, terminal: true });
  const closed = new Promise<"q">((resolve) => void lines.once("close", () => resolve("q")));
  try {
    for (;;) {
      const said = await Promise.race([lines.question(QUESTION), closed]);
      const answer = ANSWERS[said.trim().toLowerCase().slice(0, 1)];
      if (answer !== undefined) return answer;
    }
  } finally {
    lines.close();
  }
}
