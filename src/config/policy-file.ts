import path from "node:path";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { UserRules } from "../policy/rule.ts";
import { type Env, placesFrom, projectConfigFile } from "./places.ts";
import { readConfigText } from "./load-config.ts";

export interface RulesRequest {
  readonly env: Env;
  /** Absolute. */
  readonly workspace: string;
  /** A project's own rules count only after `harness trust`. */
  readonly trusted: boolean;
}

/** All rules in force, their examples run. A mistake in any of them ends the command: none is left out. */
export async function loadRules({ env, workspace, trusted }: RulesRequest): Promise<UserRules> {
  const user = await presentFile(userPolicyFiles(env));
  const project = trusted ? await presentFile(projectPolicyFiles(workspace)) : undefined;
  const files = [
    ...(user === undefined ? [] : [{ ...user, origin: "user" as const }]),
    ...(project === undefined ? [] : [{ ...project, origin: "project" as const }]),
  ];
  if (files.length === 0) return [];
  // What rules mean, and how they are written, is loaded only for those who have some.
  const { rulesOf } = await import("./policy-rules-file.ts");
  const { home } = placesFrom(env);
  const lists = await Promise.all(files.map((file) => rulesOf(file, home)));
  return lists.flat();
}

const NAMES = ["policy.toml", "policy.json"] as const;
const beside = (file: string): readonly string[] => NAMES.map((name) => path.join(path.dirname(file), name));

/** Where a user's rules may stand, the first being the place for new ones. */
export const userPolicyFiles = (env: Env): readonly string[] => placesFrom(env).configFiles.flatMap(beside);
const projectPolicyFiles = (workspace: string): readonly string[] => beside(projectConfigFile(workspace));

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
