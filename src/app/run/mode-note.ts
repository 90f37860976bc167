import type { Mode } from "../../core/decision.ts";
import type { Message } from "../../core/messages.ts";
import { firstOf } from "../../core/text/short-lists.ts";

const SAYS: Readonly<Record<Mode, string>> = {
  "read-only": "nothing can be changed any more",
  "workspace-write": "you can write below the workspace and in /tmp",
  "danger-full-access": "you can write everywhere in the container, and reach the network",
};

const NOTE = /\n\n\[harness\] The mode is (read-only|workspace-write|danger-full-access) now: [^\n]*$/;

/**
 * What the model must be told of the mode behind a request, or nothing: the system prompt says how it was at the start,
 * and stays as it is. What was taken back or left out since is said again.
 */
export function modeNote(seen: readonly Message[], atStart: Mode, mode: Mode): string {
  const told = seen.findLast(({ role, text }) => role === "user" && NOTE.test(text));
  const known = NOTE.exec(told?.text ?? "")?.[1] ?? atStart;
  if (known === mode) return "";
  return `\n\n[harness] The mode is ${mode} now: ${SAYS[mode]}. The box is a new one: what was outside of the workspace is gone.`;
}

const NETWORK_NOTE = /\n\n\[harness\] The network from now on: ([^\n]*)$/m;

/** The same of what may be reached: `pinned` is the system prompt, `network` what it would say now. */
export function networkNote(seen: readonly Message[], pinned: string, network: string): string {
  const told = seen.findLast(({ role, text }) => role === "user" && NETWORK_NOTE.test(text));
  const known =
    told === undefined
      ? `${pinned}\n`.includes(`\nNetwork: ${network}\n`)
      : NETWORK_NOTE.exec(told.text)?.[1] === network;
  return known ? "" : `\n\n[harness] The network from now on: ${network}`;
}

const BOX_NOTE = /\n\n\[harness\] (?:The mode is [^\n]*)?The box is a new one: [^\n]*/;

/** `since`: so many messages there were when the box that they worked in was put away; left out where none was. */
export function boxNote(messages: readonly Message[], since: number | undefined): string {
  const isTold = since === undefined || messages.slice(since).some(({ text }) => BOX_NOTE.test(text));
  return isTold ? "" : "\n\n[harness] The box is a new one: what was outside of the workspace is gone.";
}

/** What a person took back of what a session has changed, or brought back again. */
export interface TakenBack {
  readonly step: number;
  readonly kind: "undo" | "redo";
  /** Empty where nobody can tell. */
  readonly paths: readonly string[];
}

const UNDO_NOTE = /\n\n\[harness\] (?:Undone|Redone) \(step (\d+)\): [^\n]*/g;
const MAX_PATHS = 20;

/** The same of changes that are no more: to a model that has called nothing there is nothing to tell. */
export function undoNote(messages: readonly Message[], taken: readonly TakenBack[]): string {
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

/** Of a task in the background. */
const LOST_NOTE = /\n\n\[harness\] t\d+ \([^\n]*\) is lost: [^\n]*/g;

const NAMED_NOTE = /\n\n\[harness\] With @ it names, in the workspace: [^\n]*/;

/** Of files that a person names in a request; reading them is the model's own call. */
export const namedNote = (files: readonly string[]): string =>
  files.length === 0
    ? ""
    : `\n\n[harness] With @ it names, in the workspace: ${files.map((file) => JSON.stringify(file)).join(", ")}`;

/** What the person has typed. */
export const withoutMode = (text: string): string =>
  [UNDO_NOTE, BOX_NOTE, NOTE, NETWORK_NOTE, LOST_NOTE, NAMED_NOTE].reduce(
    (typed, note) => typed.replace(note, ""),
    text,
  );

/** Whether a person has typed it, or the loop has added it for them. */
export const isTyped = ({ role, text }: Message): boolean =>
  role === "user" && !text.startsWith("[harness] ");
