import { applyEdits, modify, parseTree } from "jsonc-parser";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { ExampleContext } from "../policy/rules/examples.ts";
import type { RuleForm } from "../policy/rules/form.ts";
import { withRules } from "../policy/rules/written.ts";
import { type Env } from "./places.ts";
import { presentFile, userPolicyFiles } from "./policy-file.ts";
import { rulesOf } from "./policy-rules.ts";
import { replaceFile } from "./replace.ts";

/** Adds rules to the user's file and answers which one that is. All or nothing: what would not be read again is not written. */
export async function addRules(
  env: Env,
  rules: readonly RuleForm[],
  around: ExampleContext,
): Promise<string> {
  const files = userPolicyFiles(env);
  const { file = files[0] ?? "", text = HEAD } = (await presentFile(files)) ?? {};
  const edited = file.endsWith(".json") ? withJsonRules(text, rules) : withRules(text, rules);
  await readable({ file, text: edited }, around);
  await replaceFile(file, edited);
  return file;
}

const HEAD = "# What may run: docs/policy-rules.md\n";

async function readable(
  { file, text }: { readonly file: string; readonly text: string },
  around: ExampleContext,
): Promise<void> {
  try {
    await rulesOf({ file, text, origin: "user" }, around);
  } catch (thrown) {
    if (!(thrown instanceof HarnessError)) throw thrown;
    const message = `the rule cannot be added to the file as it stands: ${thrown.message}`;
    throw new HarnessError(EXIT.usage, message, thrown.remedy, thrown);
  }
}

const FORMAT = { insertSpaces: true, tabSize: 2 };

function withJsonRules(text: string, rules: readonly RuleForm[]): string {
  return rules.reduce((before, rule) => {
    const root = parseTree(before.replace(/^\uFEFF/, " "), [], { allowTrailingComma: true });
    const list = root?.children?.find((property) => property.children?.[0]?.value === "rules")?.children?.[1];
    const eol = before.includes("\r\n") ? "\r\n" : "\n";
    const formattingOptions = { ...FORMAT, eol };
    return list === undefined
      ? applyEdits(before, modify(before, ["rules"], [rule], { formattingOptions }))
      : applyEdits(
          before,
          modify(before, ["rules", list.children?.length ?? 0], rule, {
            formattingOptions,
            isArrayInsertion: true,
          }),
        );
  }, text);
}
