import type { Verdict } from "../core/decision.ts";
import type { TextDoubt } from "./shell/read-shell.ts";
import type { Span } from "./shell/shell-syntax.ts";

/** How to get the network that a command lacks. */
export interface NetworkStep {
  readonly text: string;
  /** Rules whose own hint this text replaces. */
  readonly covers: readonly string[];
}

/** Verdict on one effect, or on one flaw of the text. */
export interface Ruling {
  readonly id: string;
  readonly reason: string;
  readonly span: Span;
  /** Verdict in workspace-write; read-only may be stricter. */
  readonly verdict: Verdict;
  readonly readOnly: Verdict;
  readonly contained: Containment;
}

/**
 * Whether the box alone contains the effect. `offline`: the effect is unknown, so only a box without a network contains it.
 * `never`: it reads a secret, reaches a host that is not granted, needs the machine around the box, or loses what undo
 * cannot restore.
 */
type Containment = "always" | "offline" | "never";

export type Worth = Pick<Ruling, "verdict" | "readOnly" | "contained">;

export const HARMLESS: Worth = { verdict: "allow", readOnly: "allow", contained: "always" };
/** Allowed where the workspace may change. */
export const IN_WORKSPACE: Worth = { verdict: "allow", readOnly: "ask", contained: "always" };
export const CONTAINED: Worth = { verdict: "ask", readOnly: "ask", contained: "always" };
/** Not understood, so contained only in a box without a network. */
export const UNKNOWN_DEED: Worth = { verdict: "ask", readOnly: "ask", contained: "offline" };
export const ASKED: Worth = { verdict: "ask", readOnly: "ask", contained: "never" };
export const DENIED: Worth = { verdict: "deny", readOnly: "deny", contained: "never" };

const RULES: Readonly<Record<TextDoubt["id"], readonly [reason: (what: string) => string, worth: Worth]>> = {
  "text.empty": [() => "there is no command", DENIED],
  "text.control": [
    (what) => `the text contains the control character ${what}, which programs and people read differently`,
    DENIED,
  ],
  "text.syntax": [(what) => `invalid shell syntax: ${what}`, DENIED],
  "text.invalid": [(what) => `${what} stands for bytes that are not valid text`, UNKNOWN_DEED],
  "text.invisible": [(what) => `${what} is invisible, or looks like another character`, UNKNOWN_DEED],
  "text.limit": [(what) => `the text is too long to examine: ${what}`, UNKNOWN_DEED],
  "text.disagree": [(what) => `the two shell parsers disagree: ${what}`, UNKNOWN_DEED],
};

export function textRuling({ id, what, span }: TextDoubt): Ruling {
  const [reason, worth] = RULES[id];
  return { id, reason: reason(what), span, ...worth };
}

/** What to do instead, by rule id; told to people and to a model that is refused. */
const HINTS: readonly (readonly [rule: string, hint: string])[] = [
  ["text.syntax", "write it in valid bash; put a long script into a file"],
  ["text.empty", "give a command"],
  ["text.", "write it with plain characters, and in shorter pieces"],
  ["word.dynamic", "write the value itself instead of the expansion"],
  ["word.leading-glob", "put -- before the pattern, or begin it with ./"],
  ["word.bare-glob", "write ./* instead"],
  ["command.unknown", "use a known program, or allow it by a rule of your own: harness policy allow"],
  ["command.elsewhere", "call the program by its plain name"],
  ["command.unfollowed", "if you know what it does, allow it by a rule of your own: harness policy allow"],
  [
    "command.escapes",
    "use a program that only reads, or allow it by a rule of your own: harness policy allow",
  ],
  ["option.loads-code", "leave the option out: the project's own configuration is used"],
  ["option.unknown", "leave the option out"],
  ["operand.unknown", "check which arguments the program accepts"],
  ["language.unknown", "use a simpler form, such as sed -n 1,20p or awk '{print $1}'"],
  ["env.", "leave the variable out"],
  ["shell.", "write the commands out, one after the other"],
  ["read.ignored", "remove it from .harnessignore yourself, if it may be read"],
  ["read.secret", "read an example file instead, such as .env.example"],
  ["read.outside", "read files in the workspace"],
  ["read.unknown", "name the file"],
  ["write.trap", "no rule can allow it: do it yourself, outside harness"],
  ["delete.broad", "name what to delete: rm -rf build"],
  ["permissions.broad", "name the files, without -R"],
  ["code.fetched", "download it, read it, then run the file"],
  ["code.input", "put the program into a file in the workspace and run that file"],
  ["code.inline", "put the program into a file in the workspace and run that file"],
  ["code.elsewhere", "run it from inside the workspace"],
  ["repository.rewritten", "no rule can allow it; git stash and git revert keep what was there"],
  ["repository.forced", "push without force, or do it yourself"],
  ["repository.", "if you know what it does, allow it by a rule of your own: harness policy allow"],
  ["network", "grant the host, --allow-domain HOST, or do it before or after the run"],
  [
    "install",
    "grant its registry by preset (--allow-domain npm, pip, cargo, go, maven or apt) or by host, or install it beforehand: harness env build",
  ],
  ["privilege", "leave sudo out: in the box it gains nothing"],
  ["system", "no rule can allow it"],
  ["device", "no rule can allow it"],
  ["bomb", "no rule can allow it"],
];

const GRANTED =
  "no change is needed: everything it reaches is granted, so it runs when nobody is there to ask";

/**
 * The hint for a rule. `contained`: the command reaches nothing that is not granted. `network`: how to grant what the
 * command reaches, or why nothing can.
 */
export const hintFor = (rule: string, contained: boolean, network?: NetworkStep): string | undefined =>
  network?.covers.includes(rule) === true
    ? network.text
    : contained && (rule === "network" || rule === "install")
      ? GRANTED
      : HINTS.find(([id]) => rule === id || (id.endsWith(".") && rule.startsWith(id)))?.[1];

/** The hint where only one of several rules is shown. The network step follows if the hint does not include it. */
export const stepFor = (rule: string, contained: boolean, network?: NetworkStep): string | undefined => {
  const hint = hintFor(rule, contained, network);
  const rest = network === undefined || hint === network.text ? undefined : network.text;
  return hint === undefined || rest === undefined ? (hint ?? rest) : `${hint}; and ${rest}`;
};
