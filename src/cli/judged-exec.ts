import path from "node:path";
import { ignoreRulesOf } from "../app/ignore-file.ts";
import { placesFrom } from "../config/places.ts";
import { loadRules } from "../config/policy-file.ts";
import type { Settings } from "../config/settings-schema.ts";
import { runsUnattended } from "../core/decision.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import { visibleLine } from "../core/visible.ts";
import { CommandPolicy } from "../policy/decide.ts";
import { hintFor } from "../policy/ruling.ts";
import { shellText } from "../policy/shell/quote.ts";
import { nextCommand } from "./policy-commands.ts";
import { workspaceOf } from "./settings.ts";

/** Refuses a command as a run does with nobody there: what is denied, and what asks without being contained. */
export async function refuseUnlessAllowed(
  words: readonly string[],
  { mode, allow_domains: granted }: Pick<Settings, "mode" | "allow_domains">,
  flags: { readonly cwd?: string | undefined },
): Promise<void> {
  const { home } = placesFrom(process.env);
  const workspace = path.resolve(workspaceOf(flags));
  const rules = await loadRules({ env: process.env, workspace, trusted: false });
  const ignore = await ignoreRulesOf(workspace);
  const context = { mode, granted, workspace, home, rules, ...(ignore === undefined ? {} : { ignore }) };
  const text = shellText(words);
  const { decision, standings } = new CommandPolicy().explain(text, context);
  if (runsUnattended(decision, mode)) return;
  // What runs unattended is not why it is refused, though its rule may stand first.
  const rule = decision.rules.find((_, at) => {
    const standing = standings[at];
    return standing === undefined || !runsUnattended({ ...standing, decision: standing.verdict }, mode);
  });
  const verdict = decision.decision === "deny" ? "denied" : "nobody is there to be asked";
  throw new HarnessError(
    EXIT.refused,
    `${verdict}: ${visibleLine(rule?.reason ?? "no rule allows it")} (${rule?.id ?? "none"})`,
    (rule && hintFor(rule.id)) ?? nextCommand("check --explain", text, { mode, cwd: flags.cwd }),
  );
}
