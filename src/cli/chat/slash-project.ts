/** Commands of the chat for the project: its changes, its checks, and what the model is told about it. */
import { checkUp, exitFor } from "../../app/checkup.ts";
import {
  FACTS_FILE,
  factsDiff,
  writeFacts,
  factsText,
  projectFacts,
} from "../../app/project/project-facts.ts";
import type { ChatController } from "../../app/run/chat-controller.ts";
import { instructionsFor } from "../../app/run/session-state.ts";
import { applySession } from "../../app/sessions/apply-changes.ts";
import { diffOfSession } from "../../app/sessions/checkpoint-access.ts";
import { type CommitPreview, proposedMessage, WorkspaceCommit } from "../../app/sessions/commit-changes.ts";
import { diffOfLayer, undoSession } from "../../app/sessions/session-changes.ts";
import { visible, visibleLine } from "../../core/visible.ts";
import { formatCount, firstLines } from "../../core/wording.ts";
import { appliedText, diffStat, fileDiffs, undoText } from "../../render/change-lines.ts";
import { healthTable } from "../../render/setup-lines.ts";
import type { SlashCall } from "./chat-commands.ts";

const NONE = "Nothing has been said yet, so this session has changed nothing.";

/** The changes of this session, as `harness diff` shows them; `stat` gives a line for each path. */
export async function diff({ chat, argument, output, show }: SlashCall): Promise<string> {
  const { conversation, host, settings } = chat;
  if (conversation === undefined) return NONE;
  const { session } = conversation;
  // A layer can only be read while no box is over it.
  if (settings.isolation !== "bind") await chat.release();
  const waiting = await diffOfLayer(host, await chat.store(), session, (text) => show(visibleLine(text)));
  const { files, cut, lostFrom } = waiting ?? (await diffOfSession(host, session, 0));
  if (cut)
    show(
      "Its last run was killed: everything that changed since its last call began is counted as its work.",
    );
  if (lostFrom !== null) show(`Changes from step ${lostFrom} on could not be recorded and are not shown.`);
  if (files.length === 0) return "This session has changed nothing.";
  return (/^(?:--)?stat$/.test(argument) ? diffStat(files, output) : fileDiffs(files, output)).trimEnd();
}

/** Undoes all changes of this session in the folder, after showing them and getting a person's yes. */
export async function undoFiles({ chat, output, show, confirm }: SlashCall): Promise<string> {
  const { conversation, host, settings } = chat;
  if (conversation === undefined) return NONE;
  if (settings.isolation !== "bind")
    return "No change of this session has reached the folder: its changes wait in its layer (/diff, /apply).";
  const { session } = conversation;
  await chat.release();
  const store = await chat.store();
  const undone = async (dryRun: boolean): Promise<[text: string, changes: boolean]> => {
    const wanted = { target: 0, redo: false, skip: false, dryRun };
    const outcome = await undoSession(host, store, session, {
      ...wanted,
      say: (text) => show(visibleLine(text)),
    });
    const text = undoText({ ...outcome, ...wanted, session: session.id }, output);
    return [
      [...outcome.notes.map(visibleLine), text].join("\n"),
      outcome.ops.some(({ from, to }) => from !== to),
    ];
  };
  const [planned, changes] = await undone(true);
  if (!changes) return "There is nothing to take back: the folder is as this session found it.";
  show(planned);
  if (!(await confirm("Take this back?"))) return "Nothing was taken back.";
  return (await undone(false))[0];
}

/** Moves the changes in the session's layer into the folder, after showing them and getting a person's yes. */
export async function apply({ chat, output, show, confirm }: SlashCall): Promise<string> {
  const { conversation, host, settings } = chat;
  if (conversation === undefined) return NONE;
  if (settings.isolation === "bind")
    return "There is no layer: this session works in the folder itself. /diff shows what it changed.";
  const { session } = conversation;
  await chat.release();
  const store = await chat.store();
  const say = (text: string): void => show(visibleLine(text));
  const options = { accept: [], interactive: false, prompter: undefined, say };
  const planned = await applySession(host, store, session, { ...options, dryRun: true });
  show(appliedText(planned, output).trimEnd());
  if (!planned.ops.some(({ from, to }) => from !== to)) return "There is nothing to move.";
  if (!(await confirm("Move this into the folder?"))) return "Nothing was moved.";
  const prompter = { confirm, pickPart: quit, approve: answerNo };
  const outcome = await applySession(host, store, session, { ...options, prompter, dryRun: false });
  return appliedText(outcome, output).trimEnd();
}

// Parts and calls are not asked about here.
const quit = (): Promise<"quit"> => Promise.resolve("quit");
const answerNo = (): Promise<"no"> => Promise.resolve("no");

/** Checks everything a run depends on, as `harness doctor` does. */
export async function doctor({ chat, output }: SlashCall): Promise<string> {
  const { host, workspace, settings, origins } = chat;
  const checks = await checkUp(host, workspace, () => Promise.resolve({ settings, origins }));
  const end = exitFor(checks) === 0 ? "A run would work." : "A run would not work.";
  return `${healthTable(checks, output)}${end}`;
}

const MAX_NOTES = 10;

/** What the model is told without asking: instructions, notes, and the content of its window. */
export async function memory({ chat }: SlashCall): Promise<string> {
  const { host, workspace } = chat;
  const { own, project } = await instructionsFor(host, workspace);
  const files = [...own, ...project].map(({ path, file, text, cut }) =>
    visibleLine(`  ${sizeOf(text)}  ${path}${cut ? " (only its beginning)" : ""}  ${file}`),
  );
  const notes = (await chat.store()).notes(workspace).find("", MAX_NOTES + 1);
  const titles = notes
    .slice(0, MAX_NOTES)
    .map(({ title, body }) => visibleLine(`  ${sizeOf(body)}  ${title}`));
  return [
    files.length === 0
      ? "instructions  none (/init writes an AGENTS.md)"
      : "instructions  in the prompt of new sessions, yours first",
    ...files,
    notes.length === 0 ? "notes         none" : "notes         read by the model when it asks for them",
    ...titles,
    ...(notes.length > MAX_NOTES ? ["  and more"] : []),
    ...windowLines(chat),
  ].join("\n");
}

const sizeOf = (text: string): string => `${(Buffer.byteLength(text) / 1024).toFixed(1)} KiB`.padStart(9);

const PARTS = {
  system: "instructions of harness",
  instructions: "instructions from you and the project",
  tools: "the tools",
  summary: "the summary of older turns",
  requests: "what you said, and facts added to it",
  replies: "what the model said",
  results: "results of calls",
} as const;

function windowLines({ conversation, settings }: ChatController): readonly string[] {
  if (conversation === undefined) return ["window        nothing has been sent yet"];
  const parts = conversation.state.sizeFor(settings.chat_model).parts(conversation.memory.history.view());
  const lines = Object.entries(PARTS).flatMap(([part, says]) => {
    const tokens = parts[part as keyof typeof PARTS];
    return tokens === 0 ? [] : [`  ${formatCount(tokens).padStart(9)}  ${says}`];
  });
  return ["window        approximate tokens of the next request", ...lines];
}

/** The system prompt as it is sent; before the first request, as it would be. */
export async function system({ chat }: SlashCall): Promise<string> {
  const summary = chat.conversation?.memory.history.pinned;
  if (summary !== undefined) return visible(summary);
  const { sessionPrompt } = await import("../../app/run/session-state.ts");
  const { text } = await sessionPrompt(chat.host, chat.settings, chat.workspace);
  return visible(
    `${text}\n\n(This is how a session would begin now; skills and MCP servers add their part with the first message.)`,
  );
}

const READ_ONLY = "The mode is read-only: nothing is written. /mode workspace-write changes that.";

/** Writes a short AGENTS.md from facts that need no model. */
export async function init({ chat, output, show, confirm }: SlashCall): Promise<string> {
  const { host, workspace, settings } = chat;
  if (settings.mode === "read-only") return READ_ONLY;
  const facts = await projectFacts(workspace);
  if (facts.languages.length === 0 && facts.commands.length === 0)
    return "There is nothing to write: no source files and no known commands were found here.";
  const { project } = await instructionsFor(host, workspace);
  const text = factsText(facts);
  const before = project.find(({ path }) => path === FACTS_FILE);
  if (before?.text === text) return `${FACTS_FILE} already says exactly this.`;
  show(
    before === undefined
      ? visible(text).trimEnd()
      : fileDiffs([await factsDiff(before.text, text)], output).trimEnd() +
          (before.cut ? "\n(only the beginning of the present file)" : ""),
  );
  const question = before === undefined ? `Write this to ${FACTS_FILE}?` : `Change ${FACTS_FILE} like this?`;
  if (!(await confirm(question))) return "Nothing was written.";
  await chat.release();
  const warn = (text: string): void => show(visibleLine(text));
  const store = await chat.store();
  const session = chat.conversation?.session;
  const back = await chat.aside((signal) =>
    writeFacts({ host, settings, workspace, store, session, warn }, text, signal),
  );
  return `${FACTS_FILE} is written; new sessions will read it.\nTo undo this: ${back}`;
}

const MAX_SHOWN = 40;

/** Commits what is staged, or everything not ignored, after showing it with its message and getting a person's yes. */
export async function commit(call: SlashCall): Promise<string> {
  const { chat, argument, show } = call;
  const { host, workspace, settings } = chat;
  if (settings.mode === "read-only") return READ_ONLY;
  await chat.release();
  return chat.aside(async (signal) => {
    const warn = (text: string): void => show(visibleLine(text));
    await using made = await WorkspaceCommit.open({ host, settings, workspace, signal, warn });
    const preview = await made.preview();
    if (preview.paths.length === 0) return "There is nothing to commit.";
    show(previewText(preview));
    const message =
      argument === "" ? await proposedBy(chat, preview, await made.diff(preview), signal) : argument;
    if (message === undefined) return "The model proposed no message. Give one: /commit MESSAGE";
    show(visible(`\n    ${message.replaceAll("\n", "\n    ")}`));
    if (!(await call.confirm("Commit this with this message?"))) return "Nothing was committed.";
    return visibleLine(`Committed ${await made.make(preview, message)}`);
  });
}

const proposedBy = async (
  chat: ChatController,
  { paths }: CommitPreview,
  diff: string,
  signal: AbortSignal,
): Promise<string | undefined> => {
  const provider = (await chat.model()).provider();
  return proposedMessage({ provider, model: chat.settings.chat_model }, { paths, diff }, signal);
};

function previewText({ paths, staged }: CommitPreview): string {
  return [
    staged ? "What is staged:" : "Nothing is staged, so everything that is not ignored:",
    ...firstLines(paths, MAX_SHOWN, ({ mark, path }) => visibleLine(`${mark} ${path}`)).map(
      (line) => `  ${line}`,
    ),
    "Hooks of the repository are not run.",
  ].join("\n");
}
