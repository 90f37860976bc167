import type { Doubt, Effect } from "../effects/effect.ts";
import type { Rule } from "./effects.ts";
import { ASKED, CONTAINED, DENIED, type Worth } from "./ruling.ts";

type DoubtEffect = Extract<Effect, { readonly kind: "unknown" }>;

const REASONS: Readonly<Record<Doubt, (what: string, by: string) => string>> = {
  "word.dynamic": () => "only the shell will know what stands here",
  "word.leading-glob": (what, by) => `a file whose name begins with - turns ${what} into an option of ${by}`,
  "word.bare-glob": (what, by) => `${what} takes in every file, also one that ${by} reads as an option`,
  "command.unknown": (what) => `${what} is no program that is known here`,
  "command.elsewhere": (what) => `${what} is not the program of that name in the system's folders`,
  "command.unfollowed": (what) => `what ${what} does is not followed here`,
  "command.escapes": (what) => `${what} has ways of its own to run any command`,
  "option.unknown": (what, by) => `${what} is no option of ${by} that is known to be harmless`,
  "operand.unknown": (what, by) => `${what} is nothing that ${by} is known to take`,
  "option.loads-code": (what, by) => `${by} takes code or settings that run code from ${what}`,
  "language.unknown": (_, by) => `the program given to ${by} is none of the forms known to be harmless`,
  "env.unknown": (what) => `${what} can change what programs do`,
  "env.own": (what) => `${what} is a variable whose effect is not known here`,
  "shell.function": (what) => `${what} is defined anew, so it is not the program of that name`,
  "shell.builtin": (what) => `${what} changes what the shell does afterwards`,
  "shell.expansion": () => "the shell calculates here, and that can run commands",
  "shell.coproc": () => "a process beside the others, whose end nobody waits for",
  "shell.unreadable": (what) => `the text for a shell is not understood: ${what}`,
  "shell.limit": (what) => `${what} are too much to follow`,
  "shell.unseen": (what) => `${what} lies too deep, or comes too late, to be looked at`,
};

export const DOUBTS: readonly string[] = Object.keys(REASONS);

export const doubtRuling = ({ doubt, what, by, inside }: DoubtEffect): Rule => ({
  id: doubt,
  reason: REASONS[doubt](what, by),
  ...worthOf(doubt, inside === true),
});

function worthOf(doubt: Doubt, inside: boolean): Worth {
  if (doubt === "shell.unseen") return DENIED;
  return inside || doubt === "env.own" || doubt === "word.bare-glob" ? CONTAINED : ASKED;
}
