import { Args, Flags } from "@oclif/core";
import type { Host } from "../../app/host.ts";
import {
  diffStat,
  fileDiffs,
  pipedPatch,
  pipedText,
  shownPatch,
  stepTable,
} from "../../render/change-lines.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { noteTo } from "../../app/stderr-messages.ts";
import { namedSession, recordLostSession, withSessions } from "../../app/sessions/session-access.ts";
import { bundleFlag, refuseIdOfBundle, settingFlags, workspaceOf } from "../settings.ts";
import { diffOfSession } from "../../app/sessions/checkpoint-access.ts";
import { stdout } from "../../render/tty/output.ts";
import type { FileDiff } from "../../core/text/line-diff.ts";
import { visibleWhole } from "../../core/visible.ts";

export class Diff extends HarnessCommand {
  static override summary = "Show what a session's runs changed in the workspace.";
  static override description =
    "Without ID, shows the last session of this folder. The diff covers everything from before the session's first change to after its last one, including ignored and untracked files, whatever was changed since then. It leaves out what was undone. Control characters in names and texts are shown, not run. In a pipe, the output is a patch that `git apply` accepts; what such a patch cannot hold is written in it as comments and named on stderr. `.git` and `.harness` are never part of the diff. For a session in a layer or a copy, it shows what `harness apply` would do, including `.git`. --bundle prints the patch in a file from `harness sessions export --bundle` or in an object of a bucket (s3://BUCKET/KEY).";
  static override usage = "diff [ID] [--stat | --steps] [--from STEP] [--cwd DIR] [FLAGS] | --bundle FILE";
  static override args = {
    id: Args.string({ description: "session ID, as shown by `harness sessions list`", ignoreStdin: true }),
  };
  static override flags = {
    stat: Flags.boolean({ description: "show only one line for each path" }),
    from: Flags.integer({
      description: "show only what came after this step",
      helpValue: "STEP",
      min: 0,
      default: 0,
    }),
    steps: Flags.boolean({ description: "list the steps instead, for --from and for `undo --to`" }),
    bundle: { ...bundleFlag, exclusive: ["cwd", "engine", "stat", "from", "steps"] },
    cwd: settingFlags.cwd,
    engine: settingFlags.engine,
  };
  static override examples = [
    "harness diff",
    "harness diff --stat",
    "harness diff 1ng41 > changes.patch",
    "harness diff --bundle session.tar",
  ];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Diff);
    if (flags.bundle !== undefined) return diffOfBundle(this.host, flags.bundle, args.id, flags);
    await withSessions(this.host, async (store) => {
      await recordLostSession(this.host, store, args.id);
      const session = await namedSession(store, args.id, workspaceOf(flags));
      if (flags.steps) {
        const steps = session.steps.all();
        if (flags.json) answerJson({ session: session.id, steps });
        else answer(stepTable(steps, stdout));
        return;
      }
      const { diffOfLayer, requireStep } = await import("../../app/sessions/session-changes.ts");
      requireStep(session, flags.from);
      const say = noteTo(flags.quiet);
      const waiting = await diffOfLayer(this.host, store, session, say);
      const { files, cut, lostFrom } = waiting ?? (await diffOfSession(this.host, session, flags.from));
      const { workspace } = session.info();
      if (flags.json)
        answerJson({ session: session.id, workspace, from: flags.from, cut, lost_from: lostFrom, files });
      else if (flags.stat) answer(diffStat(files, stdout));
      else if (isShown()) stdout.write(fileDiffs(files, stdout));
      else await writePatch(files, say);
      const since = flags.from === 0 ? "" : ` after step ${flags.from}`;
      // Of a layer with changes that cannot be shown, each has been named.
      if (files.length === 0 && waiting === undefined)
        say(`the session ${session.id} has changed nothing in ${workspace}${since}`);
      if (cut)
        say(
          "its last run was killed: everything that changed since its last call began is counted as its work",
        );
      if (lostFrom !== null) say(`changes from step ${lostFrom} on could not be recorded and are not shown`);
    });
  }
}

/** Whether a person sees the output; otherwise it is a patch for a program. */
const isShown = (): boolean => stdout.isTTY || stdout.marksOf("red") !== undefined;

async function writePatch(files: readonly FileDiff[], say: (text: string) => void): Promise<void> {
  const { text, left } = pipedPatch(files);
  await stdout.program().write(Buffer.from(text));
  if (left.length > 0)
    say(
      `a patch cannot express these changes, so it contains them as comments, which git apply ignores: ${left.map(visibleWhole).join(", ")}`,
    );
}

async function diffOfBundle(
  host: Host,
  file: string,
  id: string | undefined,
  { json, quiet }: { readonly json: boolean; readonly quiet: boolean },
): Promise<void> {
  refuseIdOfBundle(id, "diff");
  const { infoOfBundle, patchOfBundle, readBundle } = await import("../../app/sessions/read-bundle.ts");
  const read = await readBundle(host, file);
  const { id: session, workspace } = infoOfBundle(read);
  const patch = patchOfBundle(read);
  if (json) answerJson({ session, workspace, bundle: file, patch });
  else if (isShown()) stdout.write(shownPatch(patch, stdout));
  else await stdout.program().write(Buffer.from(pipedText(patch)));
  if (patch === "") noteTo(quiet)(`${file} holds no changes of the session ${session}`);
}
