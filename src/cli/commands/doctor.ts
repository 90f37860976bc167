import { Args, Flags } from "@oclif/core";
import { attackTable, bundledLines, healthTable } from "../../render/setup-lines.ts";
import { checkUp, exitFor } from "../../app/checkup.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { configFor, settingFlags, workspaceOf } from "../settings.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { untilInterrupted } from "../../app/interruption.ts";
import { stdout } from "../../render/tty/output.ts";

export class Doctor extends HarnessCommand {
  static override summary = "Check everything that a run depends on.";
  static override description =
    "Each line says ok, warn or fail, with the command that fixes the problem. The exit code says whether `run` would work: 0, or 2 (config), 6 (sandbox), 5 (model). --attack tries forbidden things in a live box on this machine, over a folder made for it, each next to the nearest allowed thing. It ends with 1 if one of them got through or could not be shown to fail, and names the promise that this machine does not keep and what to do. --bundle writes one file for a bug report, to FILE or to the state folder of harness: these answers, versions, settings and the diagnostics of the last runs. The file holds no prompts, commands, outputs or files; secrets, home folders and names are masked.";
  static override usage = "doctor [FLAGS] [--bundle [FILE]]";
  static override args = {
    file: Args.string({
      description: "with --bundle: file to write; it must not exist yet",
      ignoreStdin: true,
    }),
  };
  static override flags = {
    ...settingFlags,
    attack: Flags.boolean({
      description: "try to break out of a box, and report which promises this machine keeps",
    }),
    bundle: Flags.boolean({ description: "write one file for a bug report", exclusive: ["attack"] }),
  };
  static override examples = [
    "harness doctor",
    "harness doctor --attack",
    "harness doctor --bundle",
    "harness doctor --json --provider openai --base-url http://127.0.0.1:1234/v1",
  ];

  async run(): Promise<void> {
    const { flags, args } = await this.parse(Doctor);
    if (flags.bundle) return this.#bundle(flags, args.file);
    if (args.file !== undefined)
      throw new HarnessError(
        EXIT.usage,
        `unexpected word: ${args.file}`,
        "harness doctor --bundle FILE, or harness doctor --help",
      );
    if (flags.attack) return this.#attack(flags);
    const checks = await checkUp(this.host, workspaceOf(flags), () => configFor(flags));
    const exit = exitFor(checks);
    if (flags.json) answerJson({ ok: exit === 0, exit_code: exit, checks });
    else answer(healthTable(checks, stdout));
    process.exitCode = exit;
  }

  async #bundle(
    flags: Readonly<Record<string, unknown>> & { readonly json: boolean },
    file: string | undefined,
  ): Promise<void> {
    const { writeBugReport } = await import("../../app/doctor-reports.ts");
    const load = (): ReturnType<typeof configFor> => configFor(flags);
    const bundled = await writeBugReport({ host: this.host, workspace: workspaceOf(flags), load, file });
    if (flags.json) answerJson(bundled);
    else answer(bundledLines(bundled));
  }

  async #attack(flags: Readonly<Record<string, unknown>> & { readonly json: boolean }): Promise<void> {
    const { settings } = await configFor(flags);
    const { attackBoxes } = await import("../../app/doctor-reports.ts");
    const runtime = typeof flags["runtime"] === "string" ? flags["runtime"] : null;
    const request = { image: settings.image, runtime };
    const report = await untilInterrupted((signal) => attackBoxes(this.host, request, signal), "");
    if (flags.json) answerJson(report);
    else answer(attackTable(report, stdout));
    process.exitCode = report.exit_code;
  }
}
