/** A run in the terms of the Agent Client Protocol, for an editor. Pure. */
import path from "node:path";
import type {
  ContentBlock,
  PermissionOption,
  PlanEntry,
  SessionUpdate,
  StopReason,
  ToolCallContent,
  ToolCallLocation,
  ToolKind,
} from "@agentclientprotocol/sdk";
import type { AgentEvent } from "../core/events.ts";
import type { Message } from "../core/model-provider.ts";
import type { Question } from "../core/ports.ts";
import { visibleLine } from "../core/visible.ts";

type Finished = Extract<AgentEvent, { readonly type: "run.finished" }>;
type Args = Readonly<Record<string, unknown>>;

const KINDS: Readonly<Record<string, ToolKind>> = {
  read_file: "read",
  list_dir: "read",
  show_full: "read",
  notes: "read",
  glob: "search",
  grep: "search",
  semantic_search: "search",
  edit_file: "edit",
  write_file: "edit",
  apply_patch: "edit",
  bash: "execute",
  task: "think",
  plan: "think",
  web_fetch: "fetch",
  web_search: "fetch",
};

const kindOf = (tool: string): ToolKind => KINDS[tool] ?? "other";

const text = (content: string): ContentBlock => ({ type: "text", text: content });

const message = (content: string): SessionUpdate => ({
  sessionUpdate: "agent_message_chunk",
  content: text(content),
});

/** A text from the harness, not from the model. */
export const notice = (content: string): SessionUpdate => message(`\n\n[harness] ${content}\n\n`);

/** A command that an editor can offer: `/NAME` followed by arguments. */
export interface EditorCommand {
  readonly name: string;
  readonly description: string;
  /** What to call its arguments; empty if unknown. */
  readonly hint: string;
}

/** As many as an editor displays. */
const MAX_COMMANDS = 200;

export const commandsOf = (all: readonly EditorCommand[]): SessionUpdate => ({
  sessionUpdate: "available_commands_update",
  availableCommands: all.slice(0, MAX_COMMANDS).map(({ name, description, hint }) => ({
    name,
    description: shortLine(description),
    input: { hint: hint === "" ? "arguments" : shortLine(hint) },
  })),
});

/** Text that was already sent cannot be taken back. */
export const replacedAnswer = (answer: string): SessionUpdate =>
  message(`\n\n[harness] A hook replaced the answer with this:\n\n${answer}`);

/** What the open calls would do to files, by their ids. */
export type OpenDiffs = Map<string, readonly ToolCallContent[]>;

/** The updates for one event; none for most events. */
export function updatesOf(event: AgentEvent, workspace: string, diffs: OpenDiffs): readonly SessionUpdate[] {
  const id = (call: string): string => (event.agent === undefined ? call : `${event.agent}/${call}`);
  switch (event.type) {
    case "text":
      // A subagent answers the model, not the person.
      return event.agent === undefined ? [message(event.text)] : [];
    case "thinking":
      return event.agent === undefined
        ? [{ sessionUpdate: "agent_thought_chunk", content: text(event.text) }]
        : [];
    case "call.proposed":
      return [proposedCall(id(event.call), event.tool, event.args, { workspace, diffs })];
    case "call.decided":
      return event.runs
        ? [{ sessionUpdate: "tool_call_update", toolCallId: id(event.call), status: "in_progress" }]
        : [];
    case "call.ended":
      return [endedCall(id(event.call), event, diffs)];
    case "plan":
      return [{ sessionUpdate: "plan", entries: entriesOf(event.steps) }];
    case "model.waiting":
      return [notice(`The model is asked again (${event.reason}); its last reply no longer counts.`)];
    case "notice":
      return [notice(event.text)];
    case "run.finished":
      return closingOf(event);
    default:
      return [];
  }
}

function proposedCall(
  toolCallId: string,
  tool: string,
  args: Args,
  { workspace, diffs }: { readonly workspace: string; readonly diffs: OpenDiffs },
): SessionUpdate {
  const content = diffsOf(tool, args, workspace);
  if (content.length > 0) diffs.set(toolCallId, content);
  return {
    sessionUpdate: "tool_call",
    toolCallId,
    title: titleOf(tool, args),
    kind: kindOf(tool),
    status: "pending",
    locations: placesOf(args, workspace),
    rawInput: args,
    ...(content.length === 0 ? {} : { content: [...content] }),
  };
}

const MAX_TITLE = 200;
const NAMING = ["command", "path", "pattern", "query", "job", "url", "prompt", "title", "id"] as const;

function titleOf(tool: string, args: Args): string {
  const named = NAMING.map((key) => wordIn(args, key) ?? "").find((value) => value !== "");
  return shortLine(named === undefined ? tool : `${tool} ${named}`);
}

function shortLine(text: string): string {
  const line = visibleLine(text);
  return line.length <= MAX_TITLE ? line : `${line.slice(0, MAX_TITLE - 1).toWellFormed()}…`;
}

const absolutePath = (file: string, workspace: string): string => path.resolve(workspace, file);

const placesOf = (args: Args, workspace: string): ToolCallLocation[] =>
  typeof args["path"] === "string" ? [{ path: absolutePath(args["path"], workspace) }] : [];

/** The intended effect of an edit, if the arguments alone show it. */
function diffsOf(tool: string, args: Args, workspace: string): readonly ToolCallContent[] {
  const { path: file, content, edits } = args;
  if (typeof file !== "string") return [];
  const at = absolutePath(file, workspace);
  if (tool === "write_file" && typeof content === "string")
    return [{ type: "diff", path: at, oldText: null, newText: content }];
  if (tool !== "edit_file") return [];
  const each: readonly unknown[] = Array.isArray(edits) ? edits : [args];
  return each.flatMap((edit) => {
    const [before, after] = [wordIn(edit, "old"), wordIn(edit, "new")];
    return before === undefined || after === undefined
      ? []
      : [{ type: "diff" as const, path: at, oldText: before, newText: after }];
  });
}

function wordIn(value: unknown, key: string): string | undefined {
  const found: unknown = typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
  return typeof found === "string" ? found : undefined;
}

type Ended = Extract<AgentEvent, { readonly type: "call.ended" }>;

function endedCall(
  toolCallId: string,
  { kind, cause, text: output, exit_code, reason }: Ended,
  diffs: OpenDiffs,
): SessionUpdate {
  return {
    sessionUpdate: "tool_call_update",
    toolCallId,
    status: kind === "ok" ? "completed" : "failed",
    content: contentAtEnd(toolCallId, output, { diffs, isDone: kind === "ok" }),
    rawOutput: {
      kind,
      cause,
      ...(exit_code === undefined ? {} : { exit_code }),
      ...(reason === undefined ? {} : { reason }),
    },
  };
}

/** An update's content replaces all earlier content, so a diff that was made is sent again; one that was not made goes. */
function contentAtEnd(
  toolCallId: string,
  output: string,
  { diffs, isDone }: { readonly diffs: OpenDiffs; readonly isDone: boolean },
): ToolCallContent[] {
  const made = isDone ? (diffs.get(toolCallId) ?? []) : [];
  diffs.delete(toolCallId);
  return [...made, { type: "content", content: text(fenced(output)) }];
}

/** Unchanged text that is not read as Markdown. */
function fenced(content: string): string {
  const longest = Math.max(2, ...(content.match(/`{3,}/g) ?? []).map(({ length }) => length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${content}${content.endsWith("\n") ? "" : "\n"}${fence}`;
}

type Steps = Extract<AgentEvent, { readonly type: "plan" }>["steps"];

const entriesOf = (steps: Steps): PlanEntry[] =>
  steps.flatMap(({ text: content, status }): PlanEntry[] =>
    status === "dropped" ? [] : [{ content, priority: "medium", status: STEPS[status] }],
  );

const STEPS = { pending: "pending", doing: "in_progress", done: "completed" } as const;

/** What a person has to know at the end, apart from the answer. */
function closingOf({
  status,
  reason,
  quarantined = [],
  handoff,
  commits = [],
}: Finished): readonly SessionUpdate[] {
  const moved = quarantined.map(({ from, to }) => `- ${from}${to === null ? " (removed)" : ` -> ${to}`}`);
  const obeyed = handoff
    .filter(({ tier }) => tier === "dangerous")
    .map(({ path: at, reason: why }) => `- ${at}: ${why}`);
  const made = commits.map(({ hash, subject }) => `- ${hash.slice(0, 10)} ${subject}`);
  const parts = [
    status === "done" || status === "refused" || status === "interrupted" ? [] : [reason],
    moved.length === 0 ? [] : ["Made in the box and moved out of the workspace:", ...moved],
    obeyed.length === 0
      ? []
      : ["Programs on your machine would run or obey these on their own, so look at them first:", ...obeyed],
    made.length === 0 ? [] : ["Committed:", ...made],
  ];
  return parts.filter((rows) => rows.length > 0).map((rows) => notice(rows.join("\n")));
}

/** How a turn ended. A failure of the model or the box is an error of the request instead: see `failureOf`. */
export function stopOf({ status }: Pick<Finished, "status">): StopReason {
  if (status === "interrupted") return "cancelled";
  return status === "budget" ? "max_turn_requests" : "end_turn";
}

/** Undefined if the turn ended normally. */
export const failureOf = ({ status, reason }: Pick<Finished, "status" | "reason">): string | undefined =>
  status === "model" || status === "sandbox" ? reason : undefined;

export type Permission = "once" | "session" | "reject";

interface PermissionRequest {
  readonly title: string;
  readonly kind: ToolKind;
  readonly content: ToolCallContent[];
  readonly options: PermissionOption[];
}

/** A question with its possible answers. */
export function permissionRequestOf(question: Question): PermissionRequest {
  const { tool, args, text: whole, shown: shownText = "", effects = [], decision, grants = [] } = question;
  const why = (question.asks ?? decision.rules).map(
    ({ id, reason, span }) => `- ${reason} (${id})${partOf(whole, span)}`,
  );
  const hosts = grants.join(", ");
  const [once, session] =
    grants.length === 0
      ? ["Allow once", "Allow this for the rest of the session"]
      : [`Allow once, with access to ${hosts}`, `Allow, with access to ${hosts} for the rest of the session`];
  const options: PermissionOption[] = [
    { optionId: "once", name: once ?? "", kind: "allow_once" },
    { optionId: "session", name: session ?? "", kind: "allow_always" },
    { optionId: "reject", name: "Reject", kind: "reject_once" },
  ];
  const explanation = [
    ...[whole, shownText].filter((each) => each !== "").map(fenced),
    ...effectLines(effects),
    ...why,
    decision.contained ? CONTAINED : NOT_CONTAINED,
  ];
  return {
    title: titleOf(tool, args),
    kind: kindOf(tool),
    content: [{ type: "content", content: text(explanation.join("\n")) }],
    options,
  };
}

/** The part of a command that a rule concerns; empty if that is the whole command. */
function partOf(whole: string, [from, to]: readonly [number, number]): string {
  const part = whole.slice(from, to).trim();
  return part === "" || part === whole.trim() ? "" : `: ${visibleLine(part)}`;
}

/** Most effects listed one by one; the text contains them all. */
const MAX_EFFECTS = 12;

function effectLines(effects: readonly string[]): readonly string[] {
  if (effects.length === 0) return [];
  const more = effects.length - MAX_EFFECTS;
  const rows = effects.slice(0, MAX_EFFECTS).map((each) => `- ${visibleLine(each)}`);
  return ["It would:", ...rows, ...(more > 0 ? [`- and ${more} more`] : []), ""];
}

const CONTAINED =
  "\nIt is contained: no network that was not granted, and it changes only the workspace and temporary files.";
const NOT_CONTAINED =
  "\nIt is not contained: it may read a secret, reach the network, or change something outside the workspace.";

export const permissionOf = (optionId: string): Permission =>
  optionId === "once" || optionId === "session" ? optionId : "reject";

/** Earlier messages, for an editor that shows the conversation again. */
export function replayed(messages: readonly Message[], workspace: string): readonly SessionUpdate[] {
  const diffs: OpenDiffs = new Map();
  return messages.flatMap((each): readonly SessionUpdate[] => {
    switch (each.role) {
      case "system":
        return [];
      case "user":
        return [{ sessionUpdate: "user_message_chunk", content: text(each.text) }];
      case "assistant":
        return [
          ...(each.text === "" ? [] : [message(each.text)]),
          ...each.calls.map(({ id, name, args }) => proposedCall(id, name, args, { workspace, diffs })),
        ];
      case "tool":
        return [
          {
            sessionUpdate: "tool_call_update",
            toolCallId: each.call,
            status: "completed",
            content: [{ type: "content", content: text(fenced(each.text)) }],
          },
        ];
    }
  });
}

/** The person's text with the resources that they attached. Undefined if it contains an image or audio. */
export function promptOf(blocks: readonly ContentBlock[]): string | undefined {
  const parts: string[] = [];
  for (const block of blocks) {
    if (block.type === "text") parts.push(block.text);
    else if (block.type === "resource_link") parts.push(linkOf(block.uri));
    else if (block.type === "resource" && "text" in block.resource) {
      const { uri, text: content } = block.resource;
      parts.push(`\n\n${linkOf(uri)}:\n${fenced(content)}\n`);
    } else return undefined;
  }
  return parts.join("");
}

function linkOf(uri: string): string {
  if (!uri.startsWith("file://")) return uri;
  try {
    const { pathname, hash } = new URL(uri);
    return decodeURIComponent(pathname) + hash;
  } catch {
    return uri;
  }
}
