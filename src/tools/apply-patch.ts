import * as z from "zod";
import type { Box } from "../core/ports.ts";
import { type AnyTool, anyTool, type Facts, NO_FACTS, type ToolResult } from "../core/tool.ts";
import type { Desk } from "./tool-context.ts";
import { failed, ok, refusal } from "./line-endings.ts";
import { forgiving } from "./forgiving-input.ts";
import { commit, stepsTold } from "./edits/patch-commit.ts";
import { type FilePatch, PatchMistake } from "./edits/patch-model.ts";
import { type FileState, planned, type Step } from "./edits/apply-patch-plan.ts";
import { readPatch } from "./edits/patch-reader.ts";
import { absolute, shown } from "./tool-paths.ts";
import { knownContent, wrote } from "./seen-content.ts";
const input = forgiving(z.strictObject({ patch: z.string() }));

export const applyPatchTool = (desk: Desk): AnyTool =>
  anyTool({
    name: "apply_patch",
    description:
      "Change several files you have read, all or none: a unified diff, or *** Begin Patch / *** Add|Update|Delete File: path / *** Move to: path / @@ / *** End Patch.",
    input,
    beside: false,
    where: "stated",
    state: ({ patch }) => {
      const read = readPatch(patch);
      return { facts: factsOf(desk, read), run: (box, signal) => apply(desk, box, read, signal) };
    },
  });

type Read = ReturnType<typeof readPatch>;

/** A patch that cannot be read touches nothing. */
function factsOf({ workspace }: Desk, read: Read): Facts {
  if (read.kind === "mistake") return NO_FACTS;
  const paths = read.files.flatMap(({ path, to }) => (to === undefined ? [path] : [path, to]));
  return { ...NO_FACTS, writes: [...new Set(paths.map((path) => absolute(workspace, path)))] };
}

const NOTHING = "Nothing was changed.";

async function apply(desk: Desk, box: Box, read: Read, signal: AbortSignal): Promise<ToolResult> {
  if (read.kind === "mistake") return failed(`${read.why}. ${NOTHING}`);
  const plan = await planOf(desk, box, read.files);
  if (plan.kind === "refused") return plan.result;
  if (signal.aborted) return { kind: "cancelled", cause: "user", text: NOTHING };
  const made = await commit(box, plan.steps);
  if (made.kind === "refused") {
    const told = refusal(desk, made.refused);
    const stuck = made.stuck.map((path) => shown(desk.workspace, path)).join(", ");
    const rest = stuck === "" ? NOTHING : `These files could not be put back: ${stuck}.`;
    return { ...told, text: `${told.text}\n${rest}` };
  }
  for (const { path, after } of plan.steps)
    if (after === undefined) desk.seen.forget(path);
    else await wrote(desk, box, path, after.content);
  return ok(stepsTold(plan.steps, (path) => shown(desk.workspace, path)));
}

type Plan =
  | { readonly kind: "plan"; readonly steps: readonly Step[] }
  | { readonly kind: "refused"; readonly result: ToolResult };

async function planOf(desk: Desk, box: Box, files: readonly FilePatch[]): Promise<Plan> {
  let refused: ToolResult | undefined;
  const load = async (path: string): Promise<FileState | undefined> => {
    const known = await knownContent(desk, box, path);
    if (known.kind === "absent") return undefined;
    if (known.kind === "known") return { content: known.content, mode: await modeOf(box, path) };
    refused = known.result;
    throw new PatchMistake("refused");
  };
  try {
    const pathOf = (path: string): string => absolute(desk.workspace, path);
    const nameOf = (path: string): string => shown(desk.workspace, path);
    return { kind: "plan", steps: await planned(files, { pathOf, nameOf, load }) };
  } catch (thrown) {
    if (!(thrown instanceof PatchMistake)) throw thrown;
    return { kind: "refused", result: refused ?? failed(`${thrown.message}\n${NOTHING}`) };
  }
}

async function modeOf(box: Box, path: string): Promise<number> {
  const found = await box.stat(path);
  return found.kind === "ok" && found.value.kind === "file" ? found.value.mode : 0o644;
}
