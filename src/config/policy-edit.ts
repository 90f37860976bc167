import { EXIT, HarnessError } from "../core/errors.ts";
import type { RuleForm } from "../policy/rules/form.ts";
import { withRules } from "../policy/rules/written.ts";
import { withItem } from "./insert.ts";
import { type Env, placesFrom } from "./places.ts";
import { presentFile, userPolicyFiles } from "./policy-file.ts";
import { rulesOf } from "./policy-rules.ts";
import { replaceFile } from "./replace.ts";

/** Adds rules to the user's file and answers which one that is. All or nothing: what would not be read again is not written. */
export async function addRules(env: Env, rules: readonly RuleForm[]): Promise<string> {
  const files = userPolicyFiles(env);
  const { file = files[0] ?? "", text = HEAD } = (await presentFile(files)) ?? {};
  const edited = file.endsWith(".json")
    ? rules.reduce((before, rule) => withItem(before, "rules", rule), text)
    : withRules(text, rules);
  await readable({ file, text: edited }, placesFrom(env).home);
  await replaceFile(file, edited);
  return file;
}

const HEAD = "# What may run: docs/policy-rules.md\n";

async function readable(
  { file, text }: { readonly file: string; readonly text: string },
  home: string,
): Promise<void> {
  try {
    await rulesOf({ file, text, origin: "user" }, home);
  } catch (thrown) {
    if (!(thrown instanceof HarnessError)) throw thrown;
    const message = `the rule cannot be added to the file as it stands: ${thrown.message}`;
    throw new HarnessError(EXIT.usage, message, thrown.remedy, thrown);
  }
}
