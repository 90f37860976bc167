import { briefing } from "../../agent/context/briefing.ts";
import { gather } from "../../agent/context/gather.ts";
import type { LazyBox } from "./lazy-box.ts";
import type { SessionPrompt } from "./system-prompt.ts";

/** What the box tells of the workspace, once; gathered as soon as there is a box, so that it is there when it is wanted. */
export function briefingFrom(
  box: LazyBox,
  { shown, room }: SessionPrompt,
  signal: AbortSignal,
): () => Promise<string | undefined> {
  const state = { told: false };
  const gathered = box.opened.then(async (opened) => {
    const facts = await gather(opened, signal);
    const instructions = facts.instructions.filter(({ path }) => !shown.has(path));
    return briefing({ ...facts, instructions }, { trusted: false, room });
  });
  gathered.catch(() => undefined);
  return async () => {
    if (state.told || box.used() === undefined) return undefined;
    state.told = true;
    const text = await gathered.catch(() => "");
    return text === "" ? undefined : text;
  };
}
