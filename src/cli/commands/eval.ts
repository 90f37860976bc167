import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Args, Flags } from "@oclif/core";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import type { EvalWhat } from "../../app/batch/eval-run.ts";
import { untilInterrupted } from "../../app/interruption.ts";
import { ownConfigFor } from "../settings.ts";
import { noteText } from "../../app/stderr-messages.ts";
import { stderr, stdout } from "../../render/tty/output.ts";
import { ProgressLine } from "../../render/tty/live-lines.ts";

export class Eval extends HarnessCommand {
  static override summary = "Run a suite of tasks against a model, and count the solved ones.";
  static override description =
    "A suite is a folder of tasks. Each task has a repository, a prompt, and a check that runs in a box afterwards (docs/evals.md). Each task is its own `harness run` in a copy of its repository. A task is solved if the run ends as the task says and the check passes. A run that ends with 0 while the check fails is a false done. Results are written to --out as they come, and the same command continues where it was stopped. Everything after `--` is passed to `harness run`.";
  static override args = {
    suite: Args.string({ description: "folder of tasks", required: true, ignoreStdin: true }),
  };
  static override strict = false;
  static override flags = {
    out: Flags.string({
      description:
        "folder for results and the page (default: in the state folder, one for each suite and configuration)",
      helpValue: "DIR",
    }),
    times: Flags.integer({ description: "how often to run each task", min: 1, max: 1000, default: 1 }),
    jobs: Flags.integer({ description: "how many runs to do side by side", min: 1, max: 64, default: 1 }),
    attempts: Flags.integer({
      description: "number of candidates for each run that wants a change, as in `harness run --attempts`",
      min: 1,
      max: 16,
    }),
    only: Flags.string({
      description: "run only this task (may be repeated)",
      helpValue: "NAME",
      multiple: true,
    }),
    scripted: Flags.option({
      options: ["solution", "wrong", "reply"] as const,
      description:
        "play the tasks' own replies instead of a model: all are solved (solution), none is (wrong), or what a real model said (reply)",
    })(),
    compare: Flags.string({
      description: "compare with the results of another model, in its --out folder; runs nothing",
      helpValue: "DIR",
    }),
    keep: Flags.boolean({ description: "keep the workspaces of tasks that were not solved" }),
  };
  static override examples = [
    "harness eval examples/evals/small -- --model qwen2.5-coder:1.5b",
    "harness eval examples/evals/small --times 3 --jobs 2 --out /tmp/seven -- --model qwen3:8b",
    "harness eval examples/evals/small --out /tmp/seven --compare /tmp/one",
    "harness eval examples/evals/small --scripted solution",
  ];

  async run(): Promise<void> {
    const { args, argv, flags } = await this.parse(Eval);
    const { readSuite } = await import("../../app/batch/eval-suite.ts");
    const { evalName, readResults, runEval } = await import("../../app/batch/eval-run.ts");
    const { evalTable, comparedTable, evalLine: resultLine } = await import("../../render/batch-results.ts");
    const words = (argv as string[]).slice(1);
    const what = await describeEval(args.suite, words, flags);
    const out = path.resolve(flags.out ?? path.join(this.host.places.state, "evals", evalName(what)));
    if (flags.compare !== undefined) {
      const [one, other] = await Promise.all(
        [flags.compare, out].map((folder) => readResults(path.join(path.resolve(folder), "results.jsonl"))),
      );
      if (one === undefined || other === undefined || one.length === 0 || other.length === 0)
        throw new HarnessError(
          EXIT.usage,
          `no results in ${one?.length === 0 ? flags.compare : out}`,
          `harness eval ${args.suite} --out ${flags.compare} -- --model …`,
        );
      if (!flags.json) return answer(`A: ${flags.compare}\nB: ${out}\n${comparedTable(one, other)}`);
      const { comparedTasks, evalTotals: totalsOf } = await import("../../render/batch-results.ts");
      for (const each of comparedTasks(one, other)) answerJson(each);
      return answerJson({ summary: { a: totalsOf(one), b: totalsOf(other) } });
    }
    const tasks = await readSuite(args.suite, flags.only ?? []);
    using progress = new ProgressLine(stderr, { what: "eval", quiet: flags.quiet });
    const say = (text: string): void => void (flags.quiet || progress.write(noteText(text)));
    const workspaces = await mkdtemp(path.join(tmpdir(), "harness-eval-"));
    // Removed however the eval ends.
    await using ends = new AsyncDisposableStack();
    if (!flags.keep) ends.defer(() => rm(workspaces, { recursive: true, force: true }));
    const results = await untilInterrupted((signal) =>
      runEval(
        {
          tasks,
          what,
          times: flags.times,
          jobs: flags.jobs,
          folder: out,
          state: this.host.places.state,
          workspaces,
          flags: words,
          keep: flags.keep,
          ...(flags.attempts === undefined ? {} : { attempts: flags.attempts }),
          ...(flags.scripted === undefined ? {} : { scripted: `${flags.scripted}.jsonl` }),
          onTask: (now, done, total) => progress.take({ done, total, unit: "runs", now }),
          onResult: (result, done, all) => {
            progress.take({ done, total: all, unit: "runs" });
            if (flags.json) answerJson(result);
            say(`${done}/${all} ${resultLine(result)}`);
          },
        },
        signal,
      ),
    );
    progress.end();
    if (flags.keep) say(`workspaces: ${workspaces}`);
    const { evalPage } = await import("../../render/result-pages.ts");
    const page = path.join(out, "report.html");
    await writeFile(page, evalPage(path.basename(args.suite), results));
    if (!flags.json) answer(evalTable(results, stdout));
    say(`results: ${path.join(out, "results.jsonl")}, page: ${page}`);
  }
}

/** Only the model of the user's settings counts, because the results are about the model. */
async function describeEval(
  suite: string,
  flags: readonly string[],
  { scripted, attempts }: { readonly scripted?: string | undefined; readonly attempts?: number | undefined },
): Promise<EvalWhat> {
  const request = { suite: path.resolve(suite), flags, ...(attempts === undefined ? {} : { attempts }) };
  if (scripted !== undefined) return { ...request, scripted };
  const { provider, chat_model, base_url } = (await ownConfigFor({})).settings;
  return { ...request, model: { provider, chat_model, base_url } };
}
