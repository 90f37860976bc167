import type { Mode } from "../../core/decision.ts";
import type { Message } from "../../core/messages.ts";

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
      ? pinned.includes(`\nNetwork: ${network}\n`)
      : NETWORK_NOTE.exec(told.text)?.[1] === network;
  return known ? "" : `\n\n[harness] The network from now on: ${network}`;
}

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
  text.replace(NOTE, "").replace(NETWORK_NOTE, "").replace(LOST_NOTE, "").replace(NAMED_NOTE, "");

/** Whether a person has typed it, or the loop has added it for them. */
export const isTyped = ({ role, text }: Message): boolean =>
  role === "user" && !text.startsWith("[harness] ");
