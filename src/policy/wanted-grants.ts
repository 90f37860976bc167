import { grantText, readGrant } from "../core/grant.ts";
import { isOwnHost } from "./containment.ts";
import type { CommandContext, CommandPolicy, Judgement } from "./decide.ts";

/**
 * What a user could grant so that this command is contained, in the form of `allow_domains`: hosts by name, installations
 * by their preset. Empty where it is contained already, where no grant would do, and where nobody knows what it reaches.
 */
export function wantedGrants(
  policy: CommandPolicy,
  { decision }: Pick<Judgement, "decision">,
  text: string,
  context: CommandContext,
): readonly string[] {
  if (decision.decision !== "ask" || decision.contained) return [];
  const wanted = new Set<string>();
  for (const effect of decision.effects) {
    if (effect.kind === "install" && effect.from !== undefined) wanted.add(effect.from);
    if (effect.kind !== "network" || effect.inside === true) continue;
    const read = effect.hosts.filter((host) => !isOwnHost(host)).map((host) => readGrant(host));
    if (effect.hosts.length === 0 || read.some(({ kind }) => kind === "wrong")) return [];
    for (const each of read) if (each.kind === "grant") wanted.add(grantText(each.grant));
  }
  if (wanted.size === 0) return [];
  const granted = [...(context.granted ?? []), ...wanted];
  return policy.decide(text, { ...context, granted }).contained ? [...wanted] : [];
}
