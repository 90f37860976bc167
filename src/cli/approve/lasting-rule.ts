import path from "node:path";
import { addRules } from "../../config/policy-edit.ts";
import { placesFrom } from "../../config/places.ts";
import { loadRules } from "../../config/policy-file.ts";
import { HarnessError } from "../../core/errors.ts";
import type { Question } from "../../core/ports.ts";
import { type CommandContext, CommandPolicy } from "../../policy/decide.ts";
import type { RuleForm } from "../../policy/rules/form.ts";
import { ruleFor } from "../../policy/rules/remember.ts";
import { ignoreRulesOf } from "../ignore-file.ts";

type Judging = Omit<CommandContext, "mode" | "folder">;

export type LastingRule =
  | { readonly kind: "rules"; readonly rules: readonly RuleForm[] }
  | { readonly kind: "none"; readonly reason: string };

/** What calls are judged by, as it is now. A mistake in it ends the command. */
export async function judgingIn(workspace: string): Promise<Judging> {
  const [rules, ignore] = await Promise.all([
    loadRules({ env: process.env, workspace, trusted: false }),
    ignoreRulesOf(workspace),
  ]);
  const { home } = placesFrom(process.env);
  return { workspace: path.resolve(workspace), home, rules, ...(ignore === undefined ? {} : { ignore }) };
}

/** The rules of the user that would allow this from now on; or why there can be none. */
export function lastingRule({ tool, text, folder }: Question, judging: Judging): LastingRule {
  if (tool !== "bash") return { kind: "none", reason: `rules are about commands, and this is ${tool}` };
  const context = { ...judging, ...(folder === undefined ? {} : { folder }) };
  const made = ruleFor(text, context, new CommandPolicy());
  return made.kind === "rules" ? made : { kind: "none", reason: made.reason };
}

/** The file that they went into, or why they could not. */
export async function writeRules(
  rules: readonly RuleForm[],
): Promise<{ readonly file: string } | { readonly reason: string }> {
  try {
    return { file: await addRules(process.env, rules) };
  } catch (thrown) {
    if (!(thrown instanceof HarnessError)) throw thrown;
    return { reason: thrown.message };
  }
}
