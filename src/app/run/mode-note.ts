import type { Mode } from "../../core/decision.ts";
import type { Message } from "../../core/model-provider.ts";
import { firstOf } from "../../core/wording.ts";

const MODE_TEXT: Readonly<Record<Mode, string>> = {
  "read-only": "nothing can be changed any more",
  "workspace-write": "you can write below the workspace and in /tmp",
  "danger-full-access": "you can write everywhere in the container, and reach the network",
};

const NOTE = /\n\n\[harness\] The mode is (read-only|workspace-write|danger-full-access) now: [^\n]*$/;

/**
 * The note on the mode to add to a request, or nothing. The system prompt states the mode at the start and stays as it
 * is. A note that was taken back or left out since is repeated.
 */
export function modeNote(seen: readonly Message[], atStart: Mode, mode: Mode): string {
  const told = seen.findLast(({ role, text }) => role === "user" && NOTE.test(text));
  const known = NOTE.exec(told?.text ?? "")?.[1] ?? atStart;
  if (known === mode) return "";
  return `\n\n[harness] The mode is ${mode} now: ${MODE_TEXT[mode]}. The box is a new one: what was outside of the workspace is gone.`;
}

const NETWORK_NOTE = /\n\n\[harness\] The network from now on: ([^\n]*)$/m;

/** The note on the network: `pinned` is the system prompt, `network` what it would say now. */
export function networkNote(seen: readonly Message[], pinned: string, network: string): string {
  const told = seen.findLast(({ role, text }) => role === "user" && NETWORK_NOTE.test(text));
  const known =
    told === undefined
      ? `${pinned}\n`.includes(`\nNetwork: ${network}\n`)
      : NETWORK_NOTE.exec(told.text)?.[1] === network;
  return known ? "" : `\n\n[harness] The network from now on: ${network}`;
}

const BOX_NOTE = /\n\n\[harness\] (?:The mode is [^\n]*)?The box is a new one: [^\n]*/;

/** `since`: the number of messages when their box was closed; undefined if no box was closed. */
export function boxNote(messages: readonly Message[], since: number | undefined): string {
  const isTold = since === undefined || messages.slice(since).some(({ text }) => BOX_NOTE.test(text));
  return isTold ? "" : "\n\n[harness] The box is a new one: what was outside of the workspace is gone.";
}

/** Changes of a session that a person has undone or redone. */
export interface UndoneStep {
  readonly step: number;
  readonly kind: "undo" | "redo";
  /** Empty if the paths are unknown. */
  readonly paths: readonly string[];
}

const UNDO_NOTE = /\n\n\[harness\] (?:Undone|Redone) \(step (\d+)\): [^\n]*/g;
const MAX_PATHS = 20;

/** The note on undone changes; a model that has called nothing needs none. */
export function undoNote(messages: readonly Message[], taken: readonly UndoneStep[]): string {
  if (!messages.some(({ role }) => role === "tool")) return "";
  const told = messages
    .filter(({ role }) => role === "user")
    .flatMap(({ text }) => [...text.matchAll(UNDO_NOTE)].map(([, step]) => Number(step)));
  return taken
    .filter(({ step }) => step > Math.max(0, ...told))
    .map(({ step, kind, paths }) => {
      const what = paths.length === 0 ? "some of what you changed" : `what you changed in ${named(paths)}`;
      return kind === "undo"
        ? `\n\n[harness] Undone (step ${step}): the person has taken back ${what}. Go by what is in the folder now, and do not do it again unless they ask for it.`
        : `\n\n[harness] Redone (step ${step}): the person has brought back ${what}.`;
    })
    .join("");
}

const named = (paths: readonly string[]): string => firstOf(paths, MAX_PATHS, (path) => JSON.stringify(path));

/** The note on a lost background task. */
const LOST_NOTE = /\n\n\[harness\] t\d+ \([^\n]*\) is lost: [^\n]*/g;

const NAMED_NOTE = /\n\n\[harness\] With @ it names, in the workspace: [^\n]*/;

/** The note on files that a person names in a request; the model itself calls a tool to read them. */
export const namedNote = (files: readonly string[]): string =>
  files.length === 0
    ? ""
    : `\n\n[harness] With @ it names, in the workspace: ${files.map((file) => JSON.stringify(file)).join(", ")}`;

/** The text that the person typed, without notes. */
export const withoutMode = (text: string): string =>
  [UNDO_NOTE, BOX_NOTE, NOTE, NETWORK_NOTE, LOST_NOTE, NAMED_NOTE].reduce(
    (typed, note) => typed.replace(note, ""),
    text,
  );

/** Whether a person typed the message; otherwise the loop added it on their behalf. */
export const isTyped = ({ role, text }: Message): boolean =>
  role === "user" && !text.startsWith("[harness] ");
