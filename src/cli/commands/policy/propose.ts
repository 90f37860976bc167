import { Args, Flags } from "@oclif/core";
import { proposedFor } from "../../../app/project/policy-context.ts";
import { namedSession, withSessions } from "../../../app/sessions/session-access.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { settingFlags, workspaceOf } from "../../settings.ts";

export class PolicyPropose extends HarnessCommand {
  static override summary =
    "Write the smallest policy and grants that would have been enough for past sessions.";
  static override description =
    "Without ID, uses the last session of this folder; several sessions are taken together. Prints a file of rules on stdout, with the hosts that were needed, what no rule allows and what was refused as comments. --examples prints commands for `harness policy test` instead. Never proposes what is denied, was refused, reads a secret or holds one. Nothing is run or changed.";
  static override usage = "policy propose [ID...]";
  static override strict = false;
  static override args = {
    id: Args.string({ description: "session ID, as shown by `harness sessions list`", ignoreStdin: true }),
  };
  static override flags = {
    examples: Flags.boolean({ description: "print commands with their verdicts under these rules" }),
    cwd: settingFlags.cwd,
  };
  static override examples = [
    "harness policy propose > proposed.toml && harness policy test proposed.toml",
    "harness policy propose 1ng41dkw23pc 1nh02 --json | jq .allow_domains",
  ];

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(PolicyPropose);
    await withSessions(this.host, async (store) => {
      const ids = argv.length === 0 ? [undefined] : [...new Set(argv.map(String))];
      const sessions = [];
      for (const id of ids) sessions.push(await namedSession(store, id, workspaceOf(flags)));
      const { proposal, text, examples } = await proposedFor(this.host, sessions);
      if (flags.json) answerJson(proposal);
      else answer((flags.examples ? examples : text).trimEnd());
    });
  }
}
