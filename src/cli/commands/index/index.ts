import { Args, Flags } from "@oclif/core";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { untilInterrupted } from "../../interrupt.ts";
import { noteTo } from "../../note.ts";
import { runWorkspace } from "../../run/workspace.ts";
import { configFor, settingFlags, storeFlag, workspaceOf } from "../../settings.ts";

export class Index extends HarnessCommand {
  static override summary = "Make the index that `search` answers from, or bring it up to date.";
  static override description =
    "Files are listed and read in a box that can only read; nothing of the folder is run. What .gitignore and .harnessignore leave out is not in it, nor are files that usually hold secrets. Ctrl-C keeps what is done, and the same command goes on.";
  static override args = { dir: Args.string({ description: "the folder; the current one when left out" }) };
  static override flags = {
    cwd: settingFlags.cwd,
    store: storeFlag,
    embed: Flags.boolean({
      default: true,
      allowNo: true,
      description: "give chunks vectors, where a model makes them",
    }),
  };
  static override examples = ["harness index", "harness index ~/src/project --json"];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Index);
    const folder = args.dir ?? workspaceOf(flags);
    const [{ settings, origins }, workspace] = await Promise.all([
      configFor({ ...flags, cwd: folder }),
      runWorkspace(folder),
    ]);
    const { indexFolder } = await import("../../search/indexing.ts");
    const { quiet, embed: embeds } = flags;
    const indexing = { settings, origins, workspace, quiet, embeds, note: noteTo(quiet) };
    const indexed = await untilInterrupted((signal) => indexFolder(indexing, signal), KEPT);
    if (flags.json) return answerJson(indexed);
    const { indexedLines } = await import("../../../render/tty/indexed.ts");
    answer(indexedLines(indexed));
  }
}

const KEPT = "what is done is kept; harness index goes on with it";
