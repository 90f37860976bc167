import path from "node:path";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { UserRules } from "../policy/rule.ts";
import { type Env, placesFrom } from "./places.ts";
import { type ProjectText, readConfigText } from "./load-config.ts";

export interface RulesRequest {
  readonly env: Env;
  /** The rules of the project; undefined when it has none, or none that can be read. */
  readonly project: ProjectText | undefined;
}

/**
 * All rules in force; their examples are run. A mistake in a file of the user or of a trusted project ends the command:
 * no rule is left out. Of an untrusted project, only rules that ask or deny count, and a file with a mistake counts not
 * at all.
 */
export async function loadRules({ env, project }: RulesRequest): Promise<UserRules> {
  const user = await presentFile(userPolicyFiles(env));
  if (user === undefined && project === undefined) return [];
  // The meaning and syntax of rules are loaded only if there are some.
  const { rulesOf, tighteningRules } = await import("./policy-rules-file.ts");
  const { home } = placesFrom(env);
  const own = user === undefined ? [] : await rulesOf({ ...user, origin: "user" }, home);
  if (project === undefined) return own;
  const theirs = project.trusted
    ? await rulesOf({ ...project, origin: "project" }, home)
    : await tighteningRules(project, home);
  return [...own, ...theirs];
}

const NAMES = ["policy.toml", "policy.json"] as const;
const policyFilesBeside = (file: string): readonly string[] =>
  NAMES.map((name) => path.join(path.dirname(file), name));

/** Where a user's rules may be; the first is the place for new ones. */
export const userPolicyFiles = (env: Env): readonly string[] =>
  placesFrom(env).configFiles.flatMap(policyFilesBeside);

export interface PolicyText {
  readonly file: string;
  readonly text: string;
}

/** The one file of these that exists. With two, it would be unclear which one counts. */
export async function presentFile(files: readonly string[]): Promise<PolicyText | undefined> {
  const texts = await Promise.all(files.map(async (file) => ({ file, text: await readConfigText(file) })));
  const present = texts.flatMap(({ file, text }) => (text === undefined ? [] : [{ file, text }]));
  const [first, second] = present;
  if (first === undefined || second === undefined) return first;
  throw new HarnessError(
    EXIT.usage,
    `both ${first.file} and ${second.file} exist; only one policy file is allowed`,
    `move the rules from ${second.file} into ${first.file}, then remove ${second.file}`,
  );
}
