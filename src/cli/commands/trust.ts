import { Flags } from "@oclif/core";
import type { ShownTrust } from "../../app/project/project-trust.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { visible } from "../../core/visible.ts";
import { stderr, stdout } from "../../render/tty/output.ts";
import { itemText, trustText } from "../../render/repository-lines.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { settingFlags, workspaceOf } from "../settings.ts";
import { confirm, isTerminal } from "../terminal.ts";

export class Trust extends HarnessCommand {
  static override summary = "Decide which of a project's own settings, rules and recipes count.";
  static override description =
    "Shows what the project in this folder brings and what it would do, and asks you. From then on, these exact bytes count in this exact folder until they change. What only tightens counts without trust. Without a terminal, --yes takes the hash that --show prints, and nothing else. Ends with 0 if everything that is there counts, 4 if something does not, 2 if nobody could be asked or the hash is a different one.";
  static override flags = {
    show: Flags.boolean({
      description: "ask nothing; show what is trusted, what is not, and what has changed",
    }),
    revoke: Flags.boolean({
      description: "trust nothing of the project any more",
      exclusive: ["show", "yes"],
    }),
    yes: Flags.string({
      description: "trust all of the project if it still has this hash",
      helpValue: "HASH",
      exclusive: ["show"],
    }),
    cwd: settingFlags.cwd,
  };
  static override examples = ["harness trust", "harness trust --show", "harness trust --revoke"];

  async run(): Promise<void> {
    const { flags } = await this.parse(Trust);
    const trust = await import("../../app/project/project-trust.ts");
    const { runWorkspace } = await import("../../app/host.ts");
    const folder = runWorkspace(workspaceOf(flags), "harness trust --cwd FOLDER");
    const seen = await trust.readTrust(this.host, folder);
    const waiting = seen.shown.items.filter(({ waits }) => waits);
    if (flags.revoke) await trust.revokeTrust(this.host, seen);
    else if (flags.yes !== undefined) await trust.trustByHash(this.host, seen, flags.yes);
    else if (!flags.show && waiting.length > 0) {
      if (!isTerminal()) throw noTerminal();
      await trust.askForTrust(this.host, seen, waiting, {
        show: (item) => stderr.write(itemText(item, stderr)),
        confirm: (question) => confirm(question, false),
      });
    }
    const forgets = !flags.show && !flags.revoke;
    if (forgets) await trust.forgetGone(this.host, seen);
    const { shown } = flags.show ? seen : await trust.readTrust(this.host, folder);
    if (flags.json) answerJson(shown);
    else
      answer(
        flags.show
          ? trustText(shown, stdout)
          : visible(closingText(shown, flags.revoke, forgets ? seen.shown.gone : [])),
      );
    if (!flags.revoke && !allCounts(shown)) process.exitCode = EXIT.refused;
  }
}

/** The hash is only printed together with what it stands for. */
const noTerminal = (): HarnessError =>
  new HarnessError(
    EXIT.usage,
    "there is no terminal to ask on",
    "harness trust --show, then: harness trust --yes HASH",
  );

const allCounts = ({ items, damage }: ShownTrust): boolean =>
  damage === null &&
  items.every(({ waits, problem, standing }) => !waits && (problem === null || standing === "trusted"));

function closingText(
  { items, project, damage, outer }: ShownTrust,
  revoked: boolean,
  forgotten: ShownTrust["gone"],
): string {
  if (revoked) return `nothing of ${project ?? "this folder"} is trusted any more`;
  const others = [
    ...forgotten.map((kind) => `${kind}: trusted before and no longer there, so this trust is forgotten`),
    ...outer.map((file) => `${file}: trusted, but without effect in ${project ?? "this folder"}`),
    ...(damage === null ? [] : [damage]),
  ];
  if (items.length === 0) return [...others, "there is nothing here to trust"].join("\n");
  const rows = items.map(({ files, standing, waits, problem }) => {
    const state =
      standing === "trusted"
        ? "trusted"
        : problem !== null
          ? `ignored: ${problem}`
          : waits
            ? "not trusted"
            : "only tightens, so it applies without trust";
    return `${files.join(" and ")}: ${state}`;
  });
  return [...rows, ...others].join("\n");
}
