import { briefing } from "../../agent/context/briefing.ts";
import { gather } from "../../agent/context/gather.ts";
import type { History } from "../../agent/context/history.ts";
import type { LazyBox } from "./lazy-box.ts";
import type { SessionPrompt } from "./system-prompt.ts";

/** Gathered as soon as there is a box, so that it is there when it is wanted; told as long as the history has none. */
export function briefingFrom(
  box: LazyBox,
  { shown, room }: SessionPrompt,
  { history, signal }: { readonly history: History; readonly signal: AbortSignal },
): () => Promise<string | undefined> {
  const gathered = box.opened.then(async (opened) => {
    const facts = await gather(opened, signal);
    const instructions = facts.instructions.filter(({ path }) => !shown.has(path));
    return briefing({ ...facts, instructions }, { trusted: false, room });
  });
  gathered.catch(() => undefined);
  return async () => {
    if (box.used() === undefined) return undefined;
    const text = await gathered.catch(() => "");
    return text === "" || isTold(text, history) ? undefined : text;
  };
}

/** Its first line is the same whatever the workspace is like by now. */
function isTold(text: string, { messages }: History): boolean {
  const [head = ""] = text.split("\n", 1);
  return messages.some((message) => message.role !== "assistant" && message.text.includes(head));
}
