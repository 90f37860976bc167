import { applySession } from "../../app/sessions/apply-changes.ts";
import { diffOfSession } from "../../app/sessions/checkpoint-access.ts";
import { diffOfLayer, undoSession } from "../../app/sessions/session-changes.ts";
import { visibleLine } from "../../core/visible.ts";
import { diffStat, fileDiffs } from "../../render/tty/file-diffs.ts";
import { appliedText, undoText } from "../../render/lists/undo-lines.ts";
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
    const told = await undoSession(host, store, session, {
      ...wanted,
      say: (text) => show(visibleLine(text)),
    });
    const text = undoText({ ...told, ...wanted, session: session.id }, output);
    return [[...told.notes.map(visibleLine), text].join("\n"), told.ops.some(({ from, to }) => from !== to)];
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
  const prompter = { confirm, pickPart: quit, approve: no };
  const told = await applySession(host, store, session, { ...options, prompter, dryRun: false });
  return appliedText(told, output).trimEnd();
}

// Parts and calls are not asked about here.
const quit = (): Promise<"quit"> => Promise.resolve("quit");
const no = (): Promise<"no"> => Promise.resolve("no");
