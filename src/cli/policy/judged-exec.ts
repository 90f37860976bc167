import path from "node:path";
import { placesFrom } from "../../config/places.ts";
import { loadRules } from "../../config/policy-file.ts";
import type { Mode } from "../../core/decision.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { CommandPolicy } from "../../policy/decide.ts";
import { hintFor } from "../../policy/judge/hints.ts";
import { shellText } from "../../policy/shell/quote.ts";

/** Refuses a command as a run does with nobody there: what is denied, and what asks without being contained. */
export async function refuseUnlessAllowed(
  words: readonly string[],
  mode: Mode,
  folder: string,
): Promise<void> {
  const { home } = placesFrom(process.env);
  const workspace = path.resolve(folder);
  const own = await loadRules({ env: process.env, workspace, trusted: false });
  const context = { mode, workspace, home, rules: own };
  const { decision, contained, rules } = new CommandPolicy().decide(shellText(words), context);
  if (decision === "allow" || (decision === "ask" && contained && mode !== "read-only")) return;
  const [rule] = rules;
  const verdict = decision === "deny" ? "denied" : "nobody is there to be asked";
  throw new HarnessError(
    EXIT.refused,
    `${verdict}: ${rule?.reason ?? "no rule allows it"} (${rule?.id ?? "none"})`,
    (rule && hintFor(rule.id)) ?? "harness policy check --explain -- CMD",
  );
}
