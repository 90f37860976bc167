import path from "node:path";
import type { Judge } from "../../agent/judge.ts";
import { placesFrom } from "../../config/places.ts";
import type { Mode } from "../../core/decision.ts";
import { ignoreRulesOf } from "../ignore-file.ts";
import { linkFacts } from "../link-facts.ts";

/** The policy with its tables, loaded when the first call is to be judged. */
export function lazyJudge(mode: Mode, workspace: string): () => Promise<Judge> {
  const held: { judge?: Promise<Judge> } = {};
  return () => (held.judge ??= judgeFor(mode, workspace));
}

async function judgeFor(mode: Mode, workspace: string): Promise<Judge> {
  const [{ judgeIn }, { loadRules }] = await Promise.all([
    import("../../agent/judge.ts"),
    import("../../config/policy-file.ts"),
  ]);
  const rules = await loadRules({ env: process.env, workspace, trusted: false });
  const ignore = await ignoreRulesOf(workspace);
  return judgeIn({
    mode,
    workspace: path.resolve(workspace),
    home: placesFrom(process.env).home,
    rules,
    links: linkFacts,
    ...(ignore === undefined ? {} : { ignore }),
  });
}
