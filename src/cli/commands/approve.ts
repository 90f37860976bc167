import { Args, Flags } from "@oclif/core";
import { readLayer } from "../../config/setting-rules.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { lastAnswer, HarnessCommand } from "../command.ts";
import { ownConfigFor, settingFlags } from "../settings.ts";
import { prompter } from "../terminal.ts";

const ANSWERS = ["once", "session", "always", "deny"] as const;
const otherAnswers = (own: string): string[] => ANSWERS.filter((flag) => flag !== own);
const flag = (own: string, description: string) =>
  Flags.boolean({ description, helpGroup: "ANSWER", exclusive: otherAnswers(own) });

export class Approve extends HarnessCommand {
  static override summary = "Answer the question of a parked run, and let the run continue.";
  static override description =
    "Without a flag, shows the question and lets you answer it on the terminal. The run continues in its own frozen box or, if that box is gone, in a new one over the same workspace. It continues from the waiting call to its end, with the output and exit codes of `harness run`, and may park again. Your answer counts only for this exact question: if the workspace or your rules have changed what it would mean, you are asked again.";
  static override usage =
    "approve ID [--once | --session | --always | --edit COMMAND | --deny [--because WORDS]] [--allow-domain NAME...] [FLAGS]";
  static override args = {
    id: Args.string({ description: "session ID, or the beginning of it", required: true, ignoreStdin: true }),
  };
  static override flags = {
    once: flag("once", "yes, for this call"),
    session: flag("session", "yes, whenever the same is asked in this session"),
    always: flag("always", "yes, and a rule in your policy file allows it from now on"),
    edit: Flags.string({
      description: "run this command instead, for this call; it is judged anew, and the model is told",
      helpGroup: "ANSWER",
      helpValue: "COMMAND",
      exclusive: [...ANSWERS, "allow-domain"],
      parse: async (command) => {
        if (command.trim() === "")
          throw new HarnessError(
            EXIT.usage,
            "--edit needs a command",
            'harness approve ID --edit "make test"',
          );
        return command;
      },
    }),
    deny: flag("deny", "no; the model is told"),
    because: Flags.string({
      description: "with --deny: what to tell the model along with the no",
      helpGroup: "ANSWER",
      helpValue: "WORDS",
      dependsOn: ["deny"],
      parse: async (words) => {
        if (words.trim() === "")
          throw new HarnessError(EXIT.usage, "--because needs a text", "leave it out, or say why");
        return words.trim();
      },
    }),
    engine: settingFlags.engine,
    "allow-domain": Flags.string({
      multiple: true,
      description:
        "with a yes: host or preset that the box may reach for as long as the answer holds; with --always it goes into your settings, and no rule is written",
      helpGroup: "ANSWER",
      helpValue: "NAME",
      exclusive: ["deny"],
    }),
  };
  static override examples = [
    "harness approve 1ng41dkw23pc",
    "harness approve 1ng41 --once",
    "harness approve 1ng41 --session --allow-domain registry.example.org:443:read",
    'harness approve 1ng41 --edit "npm ci --offline"',
    "harness approve 1ng41 --deny --json",
    'harness approve 1ng41 --deny --because "use the mirror in vendor instead"',
  ];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Approve);
    const { json, quiet, because } = flags;
    const { "allow-domain": named = [] } = flags;
    const { allow_domains: domains = [] } = readLayer({ allow_domains: named }, () => "--allow-domain");
    const word =
      ANSWERS.find((each) => flags[each]) ??
      (domains.length > 0 || flags.edit !== undefined ? "once" : undefined);
    // Unreadable settings are reported where they are used: the run has settings of its own.
    await ownConfigFor(flags).catch(() => undefined);
    const { approve } = await import("../../app/run/approve-run.ts");
    const request = {
      host: this.host,
      id: args.id,
      answer: word,
      because,
      edited: flags.edit,
      domains,
      prompter: prompter(),
      json,
      quiet,
    };
    const finished = await approve(request);
    if (!json && finished.answer !== null) await lastAnswer(finished.answer);
    process.exitCode = finished.exit_code;
  }
}
