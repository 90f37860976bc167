import path from "node:path";
import { Args, Flags } from "@oclif/core";
import type { Settings } from "../../../config/settings-schema.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { untilInterrupted } from "../../../app/interruption.ts";
import { noteTo } from "../../../app/stderr-messages.ts";
import { runWorkspace } from "../../../app/host.ts";
import type { Indexed, Indexing } from "../../../app/project/indexing.ts";
import { configFor, settingFlags, storeFlag, workspaceOf } from "../../settings.ts";

export class Index extends HarnessCommand {
  static override summary = "Build the index that `search` answers from, or bring it up to date.";
  static override description =
    "Files are listed and read in a box that can only read; nothing in the folder is run. The index leaves out what .gitignore and .harnessignore exclude, and files that usually hold secrets. Ctrl-C keeps what is done, and the same command continues from there. It ends with 130, as everywhere. So does --watch, which otherwise ends only if its first update fails.";
  static override args = {
    dir: Args.string({ description: "folder to index (default: the current folder)", ignoreStdin: true }),
  };
  static override flags = {
    cwd: settingFlags.cwd,
    engine: settingFlags.engine,
    store: storeFlag,
    embed: Flags.boolean({
      default: true,
      allowNo: true,
      description: "compute vectors for the chunks, if a model can",
    }),
    watch: Flags.boolean({
      description: "keep the index up to date until Ctrl-C",
      exclusive: ["status", "prune"],
    }),
    status: Flags.boolean({ description: "only show what is indexed", exclusive: ["prune"] }),
    prune: Flags.boolean({ description: "remove indexes that nothing needs, and free their space" }),
  };
  static override examples = [
    "harness index",
    "harness index ~/src/project --json",
    "harness index --status",
  ];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Index);
    const from = workspaceOf(flags);
    const folder =
      args.dir === undefined || flags.cwd === undefined ? (args.dir ?? from) : path.resolve(from, args.dir);
    const { settings, origins } = await configFor({ ...flags, cwd: folder });
    const { quiet, embed: embeds } = flags;
    const note = noteTo(quiet);
    if (flags.prune) return this.#prune(settings, flags.json, note);
    const workspace = runWorkspace(folder, "harness index DIR, with a folder that exists");
    const indexing = { host: this.host, settings, origins, workspace, quiet, embeds, note };
    if (flags.status) return status(indexing, flags.json);
    const { indexedLines } = await import("../../../render/search-lines.ts");
    const show = (indexed: Indexed): void =>
      flags.json ? answerJson(indexed) : answer(indexedLines(indexed));
    await untilInterrupted(async (signal) => {
      if (!flags.watch)
        return show(await (await import("../../../app/project/indexing.ts")).indexFolder(indexing, signal));
      return (await import("../../../app/project/indexing.ts")).watch(indexing, show, signal);
    }, KEPT);
  }

  async #prune(settings: Settings, json: boolean, note: (text: string) => void): Promise<void> {
    const { pruneIndexes } = await import("../../../app/project/search-access.ts");
    const pruned = await untilInterrupted((signal) => pruneIndexes(this.host, settings, note, signal), "");
    if (json) return answerJson(pruned);
    const { prunedLines } = await import("../../../render/search-lines.ts");
    answer(prunedLines(pruned));
  }
}

const KEPT = "what is done is kept; harness index continues from there";

async function status(indexing: Indexing, json: boolean): Promise<void> {
  const { indexStatus } = await import("../../../app/project/indexing.ts");
  const found = await untilInterrupted((signal) => indexStatus(indexing, signal), "");
  if (json) return answerJson(found);
  const { statusLines } = await import("../../../render/search-lines.ts");
  answer(statusLines(found));
}
