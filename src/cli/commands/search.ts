import { Args, Flags } from "@oclif/core";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { untilInterrupted } from "../../app/interruption.ts";
import { noteTo } from "../../app/stderr-messages.ts";
import { promptFrom } from "../terminal.ts";
import { runWorkspace } from "../../app/host.ts";
import { ask, belowOf } from "../../app/project/search-request.ts";
import { configFor, settingFlags, storeFlag, workspaceOf } from "../settings.ts";
import { hitLines } from "../../render/search-lines.ts";
import { stdout } from "../../render/tty/output.ts";

export class Search extends HarnessCommand {
  static override summary = "Find code by what it does or says.";
  static override description =
    "QUERY is a few words or a sentence; - reads it from a pipe. The first search builds the index, and later searches keep it up to date. If file names and times show no change, nothing else is started; otherwise what has changed is read in a box that can only read. If that is not possible, the answer comes from the index as it is, and says so (stale). Finding nothing is not a failure.";
  static override usage = "search [FLAGS] QUERY | -";
  static override strict = false;
  static override args = { query: Args.string({ description: "what to look for; - reads it from a pipe" }) };
  static override flags = {
    cwd: settingFlags.cwd,
    engine: settingFlags.engine,
    limit: Flags.integer({
      description: "maximum number of results",
      default: 10,
      min: 1,
      max: 100,
      helpValue: "N",
    }),
    below: Flags.string({ description: "search only below this folder", helpValue: "DIR" }),
    store: storeFlag,
  };
  static override examples = [
    'harness search "where are passwords checked?"',
    "harness search --json --limit 3 retry of a broken request",
  ];

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Search);
    const query = await promptFrom(argv.map(String), undefined, QUERY);
    const workspace = runWorkspace(workspaceOf(flags), ELSEWHERE);
    const { settings, origins } = await configFor(flags);
    const { limit, quiet } = flags;
    const asking = {
      host: this.host,
      settings,
      origins,
      workspace,
      query,
      limit,
      quiet,
      below: await belowOf(flags.below, workspace, workspaceOf({})),
      note: noteTo(quiet),
    };
    const answered = await untilInterrupted((signal) => ask(asking, signal));
    if (flags.json) return answerJson(answered);
    if (answered.results.length > 0) answer(hitLines(answered.results, stdout));
    else noteTo(quiet)("nothing found");
  }
}

const QUERY = {
  what: "query",
  typed: 'harness search "where are passwords checked?"',
  piped: "harness search - < query.txt",
  shorter: "ask in a few words, or a sentence",
};

const ELSEWHERE = 'harness search --cwd FOLDER "…"';
