import path from "node:path";
import { placesFrom } from "../../config/places.ts";
import { rulesOf } from "../../config/policy-rules.ts";
import { readConfigText } from "../../config/read.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { CommandPolicy } from "../../policy/decide.ts";
import type { ChangedVerdict } from "../../render/tty/replayed.ts";
import { ignoreRulesOf } from "../ignore-file.ts";
import type { PastCommand } from "./past.ts";

/** The verdicts that would be other ones under the rules of this file; it counts as the user's, in place of those. */
export async function changedVerdicts(
  commands: readonly PastCommand[],
  file: string,
  { id, workspace }: { readonly id: string; readonly workspace: string },
): Promise<readonly ChangedVerdict[]> {
  const { home } = placesFrom(process.env);
  const text = await readConfigText(file);
  if (text === undefined)
    throw new HarnessError(EXIT.usage, `${file}: there is no such file`, `ls -l ${path.dirname(file)}`);
  const rules = await rulesOf({ file, text, origin: "user" }, home);
  const ignore = await ignoreRulesOf(workspace);
  const policy = new CommandPolicy();
  return commands.flatMap(({ judged, folder, mode, decision: old, at }) => {
    const place = { mode, workspace, home, rules, ...(folder === undefined ? {} : { folder }) };
    const now = policy.decide(judged, { ...place, ...(ignore === undefined ? {} : { ignore }) });
    if (now.decision === old) return [];
    const [rule] = now.rules;
    return {
      ts: new Date(at).toISOString(),
      session: id,
      command: judged,
      mode,
      old,
      new: now.decision,
      rule: rule?.id ?? "",
      reason: rule?.reason ?? "",
    };
  });
}
