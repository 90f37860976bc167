import type { AnswerGrant } from "../../core/network.ts";
import type { Answer, Approver, Question } from "../../core/ports.ts";
import { isSameQuestion } from "../../core/session.ts";
import { type RuleForm, tomlRule } from "../../policy/rule.ts";
import { addRules, ruleFile } from "../../config/policy-rules-file.ts";
import { HarnessError } from "../../core/errors.ts";
import { visible } from "../../core/visible.ts";
import { CommandPolicy } from "../../policy/decide.ts";
import { ruleFor } from "../../policy/rules-from-commands.ts";
import type { Host } from "../host.ts";
import { workspacePolicy } from "../project/policy-context.ts";

/** The answer to one part of a change; `all` and `quit` also answer the following parts. */
export type PartAnswer = "yes" | "no" | "all" | "quit";

/**
 * A grant term is a yes that grants what the question names, for that term; if the question names nothing, it is a yes
 * for the session or, by a rule, always. Other replies: a plain yes or no, a no with a message to the model, or an
 * edited command to run instead.
 */
export type PersonReply =
  | "yes"
  | "no"
  | "interrupt"
  | AnswerGrant["for"]
  | { readonly no: string }
  | { readonly edited: string };

/** The user's rules that would allow the call from now on, as they would be written; or why no rule can. */
export type RulesShown =
  | {
      readonly kind: "rules";
      readonly rules: readonly RuleForm[];
      /** The text for the file; no part of it acts on a terminal. */
      readonly text: string;
      readonly file: string;
    }
  | { readonly kind: "none"; readonly reason: string };

/** The person at the terminal. Without a person there is no prompter. */
export interface Prompter {
  /** False unless the answer is yes. */
  readonly confirm: (question: string) => Promise<boolean>;
  /** Asks whether one part of a change is wanted; the end of the input is `quit`. */
  readonly pickPart: () => Promise<PartAnswer>;
  /** Shows a waiting call, and reads the answer. */
  readonly approve: (
    question: Question,
    signal: AbortSignal,
    rulesFor: (question: Question) => Promise<RulesShown>,
  ) => Promise<PersonReply>;
}

/** Answers that need no person, even if one is there. */
export function settledByMode({ mode, writes }: Pick<Question, "mode" | "writes">): Answer | undefined {
  // In this mode the policy already turns every ask into an allow, except for asks by the user's own rules.
  if (mode === "danger-full-access") return { runs: true, by: "mode", reason: "" };
  if (mode === "read-only" && writes) return { runs: false, by: "mode", reason: "the mode is read-only" };
  return undefined;
}

export const YES: Answer = { runs: true, by: "person", reason: "" };
export const NO: Answer = { runs: false, by: "person", reason: "" };

/** A person who is there: the answer never has to wait for another process. */
export interface Person extends Approver {
  ask(question: Question, signal: AbortSignal): Promise<Answer>;
}

/** Asks a person one question at a time, and does not ask again what is settled for the session. */
export function askInTurn(settled: () => readonly Question[], ask: Person["ask"]): Person {
  let last: Promise<unknown> = Promise.resolve();
  const after = async (earlier: Promise<unknown>, ...[question, signal]: Parameters<Person["ask"]>) => {
    await earlier.catch(() => undefined);
    if (signal.aborted) return NO;
    return settled().some((each) => isSameQuestion(each, question)) ? YES : ask(question, signal);
  };
  return {
    ask: (question, signal) => {
      const known = settledByMode(question);
      if (known !== undefined) return Promise.resolve(known);
      const answer = after(last, question, signal);
      last = answer;
      return answer;
    },
  };
}

type Written =
  | { readonly kind: "written"; readonly file: string }
  | { readonly kind: "none"; readonly reason: string };

/** The user's rules that would allow the asked call from now on. */
export class LastingRules {
  readonly #host: Host;
  readonly #workspace: string;
  /** Ensures that the rules written for a question are the ones shown for it. */
  readonly #shown = new WeakMap<Question, RulesShown>();

  constructor(host: Host, workspace: string) {
    this.#host = host;
    this.#workspace = workspace;
  }

  /** Throws a HarnessError if the rules in force cannot be read. */
  async readable(): Promise<void> {
    await workspacePolicy(this.#host, this.#workspace);
  }

  /** The rules as they would be written, or why there can be none. */
  readonly shown = async (question: Question): Promise<RulesShown> => {
    const known = this.#shown.get(question);
    if (known !== undefined) return known;
    const made = await this.#made(question);
    this.#shown.set(question, made);
    return made;
  };

  /** The file that the rules were written to, or why they could not be written. */
  async write(question: Question): Promise<Written> {
    const made = await this.shown(question);
    if (made.kind === "none") return made;
    try {
      return { kind: "written", file: await addRules(this.#host.env, made.rules) };
    } catch (thrown) {
      if (!(thrown instanceof HarnessError)) throw thrown;
      return { kind: "none", reason: thrown.message };
    }
  }

  async #made({ tool, text, folder }: Question): Promise<RulesShown> {
    if (tool !== "bash") return { kind: "none", reason: `rules are about commands, and this is ${tool}` };
    const judging = await workspacePolicy(this.#host, this.#workspace);
    const context = { ...judging, ...(folder === undefined ? {} : { folder }) };
    const made = ruleFor(text, context, new CommandPolicy());
    if (made.kind === "refused") return { kind: "none", reason: made.reason };
    const shown = made.rules.map((rule) => visible(tomlRule(rule)).trimEnd()).join("\n");
    return { ...made, text: shown, file: await ruleFile(this.#host.env) };
  }
}
