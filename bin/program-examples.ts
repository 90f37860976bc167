import { CommandPolicy } from "../src/policy/decide.ts";
import type { Example } from "./compile-programs.ts";

/** Examples that are judged otherwise than their rows say, each as a line. */
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
