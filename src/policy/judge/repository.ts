import type { Effect } from "../effects/effect.ts";
import type { Rule } from "./effects.ts";
import { ASKED, CONTAINED, DENIED, type Worth } from "./ruling.ts";

type RepositoryEffect = Extract<Effect, { readonly kind: "repository" }>;

const CHANGES: Readonly<Record<RepositoryEffect["change"], readonly [reason: string, worth: Worth]>> = {
  record: ["records changes in the repository", CONTAINED],
  local: ["changes the repository", ASKED],
  lost: ["throws away work or history of the repository", ASKED],
  rewritten: ["throws away work or history that nothing brings back", DENIED],
  remote: ["changes another repository", ASKED],
  forced: ["overwrites the history of another repository", DENIED],
};

export function repositoryRuling({ change, what }: RepositoryEffect): Rule {
  const [says, worth] = CHANGES[change];
  return { id: `repository.${change}`, reason: `${what} ${says}`, ...worth };
}
