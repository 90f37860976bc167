import { addRules, ruleFile } from "../../config/policy-rules-file.ts";
import { HarnessError } from "../../core/errors.ts";
import type { Question } from "../../core/ports.ts";
import { visible } from "../../core/visible.ts";
import { CommandPolicy } from "../../policy/decide.ts";
import { ruleFor } from "../../policy/rules-from-commands.ts";
import { tomlRule } from "../../policy/rule.ts";
import type { Host } from "../host.ts";
import { workspacePolicy } from "../project/policy-context.ts";
import type { RulesShown } from "../prompter.ts";

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
