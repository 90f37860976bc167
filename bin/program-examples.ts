import { CommandPolicy } from "../src/policy/decide.ts";
import type { Example } from "./compile-programs.ts";

/** Examples with another verdict than their rows state, one line each. */
export function wrongExamples(examples: readonly Example[]): readonly string[] {
  const policy = new CommandPolicy();
  return examples.flatMap(({ where, decision, command }) => {
    const judged = policy.decide(command, {
      mode: "workspace-write",
      workspace: "/home/dev/project",
      home: "/home/dev",
    });
    const rules = judged.rules.map(({ id }) => id).join(" ");
    return judged.decision === decision
      ? []
      : [`${where}: ${command}: ${judged.decision} (${rules}), not ${decision}`];
  });
}
