import type { Message, ToolCall } from "../../core/messages.ts";
import type { Compaction } from "../../core/session.ts";
import { standingPart } from "./system-prompt.ts";
import { excerpt } from "./untrusted-text.ts";

/** Characters shown of a user's request whose message is no longer shown. */
const REQUEST = 4000;
const SUMMARY = "[Summary of the earlier work on this. Its messages are no longer shown.]";
/** Shorter results cost about as much as the mark that would replace them. */
const PRUNED_FROM = 300;
/** The marker of a cut output names the id under which the whole is kept. */
const KEPT_AS = /show_full\b[^\n]{0,40}?\bid\W{1,4}([\w-]{1,64})|show_full\(\s*["']?([\w-]{1,64})/;

/** What the model sees under this compaction. For the same head it is the same, whatever follows. */
export function viewOf(
  { pinned, messages }: { readonly pinned: string | undefined; readonly messages: readonly Message[] },
  compaction: Compaction | undefined,
): readonly Message[] {
  const shown = shownBehind(messages, compaction);
  if (pinned === undefined) return shown;
  const standing = standingPart(pinned);
  return [{ role: "system", text: pinned, ...(standing === undefined ? {} : { standing }) }, ...shown];
}

function shownBehind(messages: readonly Message[], compaction: Compaction | undefined): Message[] {
  if (compaction === undefined) return [...messages];
  const keepFrom = borderBefore(messages, compaction.keepFrom);
  const shown: Message[] = keepFrom > 0 ? [{ role: "user", text: summaryText(messages, compaction) }] : [];
  const names = new Map<string, string>();
  for (const message of messages.slice(keepFrom, compaction.pruneBefore)) {
    if (message.role === "assistant") for (const { id, name } of message.calls) names.set(id, name);
    shown.push(isLong(message) ? { ...message, text: markOf(message, names.get(message.call)) } : message);
  }
  return [...shown, ...messages.slice(Math.max(keepFrom, compaction.pruneBefore))];
}

/** Whether the message replaces messages that are no longer shown. */
export const isSummary = ({ role, text }: Message): boolean =>
  role === "user" && (text.startsWith(SUMMARY) || text.includes(`\n\n${SUMMARY}\n`));

/** Whether replacing the message by a mark would save anything. */
export const isLong = (message: Message): message is Extract<Message, { role: "tool" }> =>
  message.role === "tool" && message.text.length >= PRUNED_FROM;

function markOf({ text }: { readonly text: string }, tool = "a tool"): string {
  const kept = KEPT_AS.exec(text);
  const id = kept?.[1] ?? kept?.[2];
  const again = id === undefined ? "read it again if you need it" : `show_full has it as ${id}`;
  return `[result of ${tool} no longer shown: ${text.length} characters; ${again}]`;
}

const isRequest = ({ role }: Message): boolean => role === "user";

/**
 * The text that replaces messages no longer shown. Besides the first request, it contains the one that was being worked
 * on when the compaction was made: without it the model would continue with something else.
 */
function summaryText(
  messages: readonly Message[],
  { at, keepFrom, artifact, kept = "" }: Compaction,
): string {
  const first = messages.findIndex(isRequest);
  const last = messages.slice(0, at).findLastIndex(isRequest);
  const hidden = [first, last].filter(
    (index, place, all) => index < keepFrom && all.indexOf(index) === place,
  );
  const requests = hidden.flatMap((index) => messages[index]?.text ?? []);
  const [goal, current] = requests.map((text) => excerpt(text, REQUEST));
  return [
    ...(goal === undefined ? [] : [goal]),
    ...(current === undefined ? [] : [`[The latest request, word for word]\n${current}`]),
    `${SUMMARY}\n${artifact}\n[End of the summary]`,
    ...(kept === "" ? [] : [kept]),
  ].join("\n\n");
}

/** The calls of the last reply that wait for their results. */
export function openCalls(messages: readonly Message[]): readonly ToolCall[] {
  const last = messages.findLastIndex(({ role }) => role !== "tool");
  const reply = messages[last];
  if (reply?.role !== "assistant") return [];
  const answered = new Set(
    messages.slice(last + 1).map((result) => (result.role === "tool" ? result.call : "")),
  );
  return reply.calls.filter(({ id }) => !answered.has(id));
}

/** The nearest position at or before this one that separates no result from its call, even one still to come. */
function borderBefore(messages: readonly Message[], at: number): number {
  let border = at >= messages.length && openCalls(messages).length > 0 ? messages.length - 1 : at;
  while (border > 0 && messages[border]?.role === "tool") border -= 1;
  return border;
}
