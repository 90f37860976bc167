import { Flags } from "@oclif/core";
import { buildEnvironment } from "../../../app/boxes/environment-build.ts";
import { runWorkspace } from "../../../app/host.ts";
import { untilInterrupted } from "../../../app/interruption.ts";
import { longNote } from "../../../app/stderr-messages.ts";
import { builtLines, recipeLines, stepLine } from "../../../render/environment-lines.ts";
import { stderr } from "../../../render/tty/output.ts";
import { ProgressLine } from "../../../render/tty/live-lines.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { configFor, settingFlags, workspaceOf } from "../../settings.ts";

export class EnvBuild extends HarnessCommand {
  static override summary = "Build the environment of the current folder, unless it is already complete.";
  static override description =
    "Installs toolchains and dependencies once, in a box that reaches the registries of the recipe and nothing else. Every box of this workspace then starts from them, without a network. A build that was stopped continues where it was. If the setting kubernetes.registry names a repository, the environment is also pushed there, under a key made from its content, and boxes that are pods start from it; an environment that was built before is only pushed. With --json, prints one object.";
  static override flags = {
    cwd: settingFlags.cwd,
    engine: settingFlags.engine,
    env: settingFlags.env,
    "allow-domain": settingFlags["allow-domain"],
    memory: settingFlags.memory,
    cpus: settingFlags.cpus,
    pids: settingFlags.pids,
    rebuild: Flags.boolean({ description: "build all of it again" }),
    verbose: Flags.boolean({ description: "show the output of the tools" }),
  };
  static override examples = [
    "harness env build",
    "harness env build --env backend --allow-domain registry.example.org",
  ];

  async run(): Promise<void> {
    const { flags } = await this.parse(EnvBuild);
    const workspace = runWorkspace(workspaceOf(flags), "harness env build --cwd FOLDER");
    const { settings } = await configFor(flags);
    const tells = !flags.quiet;
    // Output of the tools would spoil a line that is rewritten.
    using progress = new ProgressLine(stderr, { what: "environment", quiet: flags.quiet || flags.verbose });
    const built = await untilInterrupted(
      (signal) =>
        buildEnvironment(
          {
            host: this.host,
            settings,
            workspace,
            rebuild: flags.rebuild,
            onStep: (step) => {
              if (tells) progress.write(stepLine(step, stderr));
              progress.take({
                done: step.at - 1,
                total: step.of,
                unit: "steps",
                now: step.title,
                steady: false,
              });
            },
            onOutput: (bytes) => void (flags.verbose && stderr.program().write(bytes)),
            warn: (text) => void (tells && progress.write(longNote(text))),
          },
          signal,
        ),
      "harness env build   (continues)",
    );
    progress.complete();
    const { record, how, chosen, lost, again, pushed, partly } = built;
    if (flags.json) {
      const { id, key, versions, installed, seconds, volumes } = record;
      answerJson({
        id,
        workspace,
        key,
        how,
        seconds,
        versions,
        installed,
        folders: volumes.map(({ target }) => target),
        pushed: pushed === null ? null : { image: pushed.image, how: pushed.how, layers: pushed.moved },
        lost: lost.length,
        failed: record.failed ?? [],
      });
    } else {
      if (tells && how === "built") stderr.write(recipeLines(chosen, stderr));
      answer(builtLines(record, how, { lost, again, pushed }));
    }
    if (partly !== undefined) throw partly;
  }
}
