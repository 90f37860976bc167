import { EXIT, HarnessError } from "../core/errors.ts";
import { visibleLine } from "../core/visible.ts";
import { CommandPolicy } from "../policy/decide.ts";
import { failedExamples } from "../policy/rules-from-commands.ts";
import {
  type Examples,
  type Origin,
  readRules,
  type RuleForm,
  ruleForm,
  type UserRules,
  withRules,
} from "../policy/rule.ts";
import {
  type ConfigDocument,
  parseConfigDocument,
  type PolicyText,
  presentFile,
  userPolicyFiles,
} from "./load-config.ts";
import { replaceFile, withItem } from "./config-edit.ts";
import { type Env, placesFrom } from "./places.ts";

/** The rules of one text. Throws with file and line if they cannot be used. */
export async function rulesOf(
  file: PolicyText & { readonly origin: Origin },
  home: string,
): Promise<UserRules> {
  return (await triedRules(file, home)).map(({ rule }) => rule);
}

/** The same with their examples, which all pass. */
export async function triedRules(
  { file, text, origin }: PolicyText & { readonly origin: Origin },
  home: string,
): Promise<readonly Examples[]> {
  const { list, key, at } = await rulesDocument(file, text);
  const { examples, problems } = readRules(list, origin);
  const wrong = problems.length > 0 ? problems : failedExamples(examples, new CommandPolicy(), home);
  const [first, ...more] = wrong;
  if (first === undefined) return examples;
  const others = more.length === 0 ? "" : ` (and ${more.length} more)`;
  throw ruleError(`${at([key, ...first.keys])}: ${first.message}${others}`);
}

/** The rules of an untrusted project that count. Their reasons are the project's words, and are marked as such. */
export async function tighteningRules(file: PolicyText, home: string): Promise<UserRules> {
  try {
    const all = await rulesOf({ ...file, origin: "project" }, home);
    return all
      .filter(({ decision }) => decision !== "allow")
      .map((rule) => ({
        ...rule,
        reason: `from the untrusted project: ${visibleLine(rule.reason)}`,
      }));
  } catch {
    // A text made to break its parser counts as one that cannot be read; `harness trust` says why.
    return [];
  }
}

/** The rules of a project as written. Throws if they contain a mistake. */
export async function writtenRules(file: PolicyText, home: string): Promise<readonly RuleForm[]> {
  await rulesOf({ ...file, origin: "project" }, home);
  return (await rulesDocument(file.file, file.text)).list.map((rule) => ruleForm.parse(rule));
}

interface RulesDocument {
  readonly list: readonly unknown[];
  readonly key: string;
  readonly at: ConfigDocument["at"];
}

const MAX_RULES = 1000;

async function rulesDocument(file: string, text: string): Promise<RulesDocument> {
  const key = file.endsWith(".toml") ? "rule" : "rules";
  const { value, at } = await document(file, text, key);
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
  const stranger = entries.find(([name]) => name !== key);
  const form = key === "rule" ? "[[rule]] tables" : '{"rules": [...]}';
  if (stranger !== undefined)
    throw ruleError(`${at([stranger[0]])}: ${stranger[0]}: unknown key; a policy file contains ${form}`);
  const list: unknown = entries[0]?.[1] ?? [];
  if (!Array.isArray(list)) throw ruleError(`${at([key])}: ${key}: expected a list of rules: ${form}`);
  if (list.length > MAX_RULES)
    throw ruleError(`${at([key, MAX_RULES])}: ${list.length} rules; the limit is ${MAX_RULES}`);
  return { list, key, at };
}

async function document(file: string, text: string, key: string): Promise<ConfigDocument> {
  try {
    if (key === "rules") return parseConfigDocument(file, text);
    const { parseTomlDocument } = await import("./toml-rules.ts");
    return parseTomlDocument(file, text, key);
  } catch (thrown) {
    throw thrown instanceof HarnessError ? ruleError(thrown.message) : thrown;
  }
}

const ruleError = (message: string): HarnessError =>
  new HarnessError(EXIT.usage, message, "fix it there; harness policy check -- ls shows whether it is valid");

/** The file that `addRules` adds to. */
export async function ruleFile(env: Env): Promise<string> {
  const files = userPolicyFiles(env);
  return (await presentFile(files))?.file ?? files[0] ?? "";
}

/** Adds rules to the user's file and returns its path. All or nothing: an unreadable result is not written. */
export async function addRules(env: Env, rules: readonly RuleForm[]): Promise<string> {
  const files = userPolicyFiles(env);
  const { file = files[0] ?? "", text = HEAD } = (await presentFile(files)) ?? {};
  const edited = file.endsWith(".json")
    ? rules.reduce((before, rule) => withItem(before, "rules", rule), text)
    : withRules(text, rules);
  await refuseUnreadable({ file, text: edited }, placesFrom(env).home);
  await replaceFile(file, edited);
  return file;
}

const HEAD = "# What may run: docs/policy-rules.md\n";

async function refuseUnreadable(
  { file, text }: { readonly file: string; readonly text: string },
  home: string,
): Promise<void> {
  try {
    await rulesOf({ file, text, origin: "user" }, home);
  } catch (thrown) {
    if (!(thrown instanceof HarnessError)) throw thrown;
    const message = `the rule cannot be added to the file: ${thrown.message}`;
    throw new HarnessError(EXIT.usage, message, thrown.remedy, thrown);
  }
}
