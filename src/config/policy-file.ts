import path from "node:path";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { UserRules } from "../policy/rule.ts";
import { type Env, placesFrom } from "./places.ts";
import { type ProjectText, readConfigText } from "./load-config.ts";

export interface RulesRequest {
  readonly env: Env;
  /** The rules of the project; undefined where it has none, or none that can be read. */
  readonly project: ProjectText | undefined;
}

/**
 * All rules in force, their examples run. A mistake in the user's or a trusted project's ends the command: none is left
 * out. Of a project that is not trusted what asks and denies counts; a file of it with a mistake does not.
 */
export async function loadRules({ env, project }: RulesRequest): Promise<UserRules> {
  const user = await presentFile(userPolicyFiles(env));
  if (user === undefined && project === undefined) return [];
  // What rules mean, and how they are written, is loaded only for those who have some.
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
const beside = (file: string): readonly string[] => NAMES.map((name) => path.join(path.dirname(file), name));

/** Where a user's rules may stand, the first being the place for new ones. */
export const userPolicyFiles = (env: Env): readonly string[] => placesFrom(env).configFiles.flatMap(beside);

export interface PolicyText {
  readonly file: string;
  readonly text: string;
}

/** The one file of these that is there. Two would leave open which of them counts. */
export async function presentFile(files: readonly string[]): Promise<PolicyText | undefined> {
  const texts = await Promise.all(files.map(async (file) => ({ file, text: await readConfigText(file) })));
  const present = texts.flatMap(({ file, text }) => (text === undefined ? [] : [{ file, text }]));
  const [first, second] = present;
  if (first === undefined || second === undefined) return first;
  throw new HarnessError(
    EXIT.usage,
    `${first.file} and ${second.file}: there are two files of rules; one counts`,
    `move the rules of one into the other: ${second.file}`,
  );
}
