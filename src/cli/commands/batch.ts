import path from "node:path";
import { Args, Flags } from "@oclif/core";
import type { BatchBudget } from "../../app/batch/batch-run.ts";
import type { printedManifests } from "../../app/batch/cluster-batch.ts";
import type { BatchRow } from "../../app/batch/batch-rows.ts";
import { interruption } from "../../app/interruption.ts";
import { noteTo } from "../../app/stderr-messages.ts";
import { isBucketAddress } from "../../core/addresses.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import {
  type BatchEnd,
  batchTable,
  batchTotals,
  rowLine,
  type RowResult,
} from "../../render/batch-results.ts";
import { stdout } from "../../render/tty/output.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { limitsFrom, ownConfigFor, runFlags, settingFlags } from "../settings.ts";
import { pipedText } from "../terminal.ts";

const { cwd: _, ...passed } = settingFlags;

const PIPED = {
  what: "list of rows",
  piped: "harness batch - < tasks.jsonl",
  shorter: "split it into several batches",
};

export class Batch extends HarnessCommand {
  static override summary = "Do many tasks unattended, some side by side, each as its own run.";
  static override description =
    'TASKS is a file of JSON lines with {"dir" or "repo", "prompt"} and optionally "check", "limits", "mode", "env" (- reads it from a pipe). --repos is a list of repositories that all get the same task. A repo is cloned in a box, as `harness vet` does. A dir is worked on in a layer over it, so the folder itself stays as it is; rows of the same folder run one after the other. Results, patches, reports and audits are written to --out as they come, and --resume continues a batch that was stopped. Ends with 0 if every row did, otherwise with 1 (docs/scale.md).';
  static override usage = "batch [FLAGS] TASKS | --repos LIST --prompt TASK";
  static override args = {
    // Piped input can be the list of repositories.
    tasks: Args.string({ description: "file of rows; - reads them from a pipe", ignoreStdin: true }),
  };
  static override flags = {
    repos: Flags.string({
      description: "file of repository paths and addresses, one per line; - reads it from a pipe",
      helpValue: "FILE",
      dependsOn: ["prompt"],
    }),
    prompt: Flags.string({ description: "with --repos: the task", helpValue: "TASK", dependsOn: ["repos"] }),
    jobs: Flags.integer({
      description: "how many rows run side by side, as far as memory and processors allow",
      helpValue: "N",
      min: 1,
      max: 256,
      default: 1,
    }),
    out: Flags.string({
      description: "folder for results, patches, reports and audits (default: in the state folder)",
      helpValue: "DIR",
    }),
    resume: Flags.boolean({
      description: "continue the batch in the folder: run only rows that have not ended",
    }),
    retries: Flags.integer({
      description: "how often to retry a row whose model or box was unavailable",
      helpValue: "N",
      min: 0,
      max: 10,
      default: 2,
    }),
    html: Flags.string({ description: "write all rows as an HTML page", helpValue: "FILE" }),
    bundles: Flags.boolean({ description: "also keep each session as a bundle (harness replay --bundle)" }),
    on: Flags.string({
      description: "where the rows run: here, or as one Job on kubernetes[:[//CONTEXT][/NAMESPACE]]",
      helpGroup: "CLUSTER",
      helpValue: "WHERE",
    }),
    "print-manifests": Flags.boolean({
      description: "with --on kubernetes: print all objects as YAML without asking a cluster",
      helpGroup: "CLUSTER",
      dependsOn: ["on"],
    }),
    tag: Flags.string({
      description: "with --on kubernetes: name of another batch of the same rows",
      helpGroup: "CLUSTER",
      helpValue: "NAME",
      dependsOn: ["on"],
    }),
    // For the command in the pod of a row.
    index: Flags.integer({ hidden: true, min: 0, dependsOn: ["out"] }),
    tree: Flags.string({ hidden: true, dependsOn: ["index"] }),
    told: Flags.string({ hidden: true, dependsOn: ["index"] }),
    "max-time": Flags.string({
      description: "maximum time for the whole batch; after it, no further row starts",
      helpGroup: "BUDGET",
      helpValue: "30m",
    }),
    "max-tokens": Flags.string({
      description: "maximum number of tokens for all rows together",
      helpGroup: "BUDGET",
      helpValue: "N",
    }),
    "max-cost": Flags.string({
      description: "maximum cost of all rows together",
      helpGroup: "BUDGET",
      helpValue: "X",
    }),
    "max-turns": Flags.string({
      description: "maximum number of requests to the model for each row (40)",
      helpGroup: "BUDGET",
      helpValue: "N",
    }),
    check: Flags.string({
      description: "command that must succeed in the box of each row that names no check of its own",
      helpGroup: "PROOF",
      helpValue: "CMD",
    }),
    attempts: runFlags.attempts,
    "on-ask": Flags.option({
      options: ["refuse", "contained"] as const,
      description: "what happens to a call that needs approval: refuse it, or run it if it is contained",
      helpGroup: "RUN",
    })(),
    ...passed,
  };
  static override examples = [
    "harness batch tasks.jsonl",
    "harness batch tasks.jsonl --jobs 4 --out results --html results.html",
    "harness batch tasks.jsonl --out results --resume",
    'harness batch --repos repos.txt --prompt "update the licence header" --check "npm test"',
    "harness batch tasks.jsonl --json | jq -r 'select(.exit_code != 0) | .reason'",
  ];

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Batch);
    if (flags.index !== undefined) return this.#index(args.tasks ?? ".", flags.index, flags);
    if (isBucketAddress(flags.out ?? ""))
      throw new HarnessError(
        EXIT.usage,
        "--out must be a folder on this machine: results are written to it wherever the rows run",
        "--out DIR; for a bucket that pods write to, set kubernetes.results_bucket (docs/kubernetes.md)",
      );
    const { rows, source, title } = await this.#rows(args.tasks, flags);
    const config = await ownConfigFor(flags);
    const { settings } = config;
    const limits = limitsFrom(flags, settings.max_turns);
    const [own, { refuseUnpriced }, { refuseVainRows }] = await Promise.all([
      import("../../app/batch/batch-run.ts"),
      import("../../app/model-access.ts"),
      import("../../app/run/attempt-plan.ts"),
    ]);
    refuseUnpriced(limits.cost, settings);
    refuseVainRows(config, rows);
    if (flags.html !== undefined) await requirePage(flags.html);
    const onCluster = flags.on === undefined || flags.on === "here" ? undefined : flags.on;
    if (flags["print-manifests"]) return this.#print({ on: onCluster ?? "here", rows, settings, flags });
    const say = noteTo(flags.quiet);
    const folder =
      flags.out === undefined
        ? await own.ownBatchFolder(this.host, source, flags.resume)
        : path.resolve(flags.out);
    const telling = {
      folder,
      warn: say,
      onResult: (result: RowResult, ended: number) => printResult(result, `${ended}/${rows.length}`, flags),
    };
    using stopped = interruption();
    if (onCluster !== undefined) {
      const { runOnCluster } = await import("../../app/batch/cluster-batch.ts");
      const command = { on: onCluster, rows, settings, flags };
      const end = await runOnCluster(this.host, command, telling, stopped.signal);
      return this.#finish(end, { title, folder }, flags);
    }
    const { runBatch } = await import("../../app/batch/batch-run.ts");
    const { jobs, why } = own.jobsFor(this.host, settings, flags.jobs);
    if (why !== undefined) say(why);
    const { words, inPlace } = own.wordsOfFlags(flags, settings);
    const end = await runBatch(
      {
        ...telling,
        host: this.host,
        settings,
        rows,
        flags: words,
        inPlace,
        runtime: flags.runtime ?? null,
        retries: flags.retries,
        jobs,
        resume: flags.resume,
        tree: null,
        bundles: flags.bundles,
        budget: budgetOf(limits),
      },
      stopped.signal,
    );
    await this.#finish(end, { title, folder }, flags);
  }

  async #print(command: Parameters<typeof printedManifests>[1]): Promise<void> {
    const cluster = await import("../../app/batch/cluster-batch.ts");
    answer(await cluster.printedManifests(this.host, command, noteTo(command.flags["quiet"] === true)));
  }

  /** Runs one row of a batch in a cluster, in its pod, and ends with the row's exit code. */
  async #index(
    folder: string,
    index: number,
    flags: { readonly tree?: string | undefined; readonly told?: string | undefined } & IndexFlags,
  ): Promise<void> {
    const { settings } = await ownConfigFor(flags);
    const [own, { indexedRow, keptAt, runIndexedRow }] = await Promise.all([
      import("../../app/batch/batch-run.ts"),
      import("../../app/batch/pod-row.ts"),
    ]);
    const { words } = own.wordsOfFlags(flags, settings);
    const { row, tree } = await indexedRow(this.host, {
      folder: path.resolve(folder),
      index,
      tree: flags.tree ?? null,
    });
    const { kept, env } = await keptAt(this.host, flags.out ?? ".", settings);
    using stopped = interruption();
    const result = await runIndexedRow(
      {
        row,
        kept,
        resultFile: flags.told ?? null,
        budget: budgetOf(limitsFrom(flags, settings.max_turns)),
        plan: {
          host: this.host,
          settings,
          flags: words,
          inPlace: false,
          runtime: flags.runtime ?? null,
          tree,
          env,
          bundles: true,
          warn: noteTo(flags.quiet),
        },
      },
      stopped.signal,
    );
    printResult(result, "1/1", flags);
    process.exitCode = result.exit_code;
  }

  async #finish(
    end: BatchEnd,
    { title, folder }: { readonly title: string; readonly folder: string },
    flags: { readonly html?: string | undefined; readonly json: boolean; readonly quiet: boolean },
  ): Promise<void> {
    const totals = batchTotals(end);
    if (flags.json) answerJson(totals);
    else answer(batchTable(end, stdout));
    noteTo(flags.quiet)(`kept in ${folder}`);
    process.exitCode = totals.exit_code;
    if (flags.html === undefined) return;
    const [{ batchPage }, { writeReport }, { REPORT_MARK }] = await Promise.all([
      import("../../render/result-pages.ts"),
      import("../../app/sessions/report-file.ts"),
      import("../../render/html-page.ts"),
    ]);
    await writeReport(flags.html, batchPage(title, end), REPORT_MARK);
  }

  async #rows(
    tasks: string | undefined,
    {
      repos,
      prompt = "",
      check,
    }: {
      readonly repos?: string | undefined;
      readonly prompt?: string | undefined;
      readonly check?: string | undefined;
    },
  ): Promise<{ readonly rows: readonly BatchRow[]; readonly source: string; readonly title: string }> {
    const file = repos ?? tasks;
    if (file === undefined || (repos !== undefined && tasks !== undefined))
      throw new HarnessError(
        EXIT.usage,
        file === undefined
          ? "no rows were given"
          : "give either a file of rows or --repos with --prompt, not both",
        'harness batch tasks.jsonl   (or: harness batch --repos LIST --prompt "…")',
      );
    if (repos !== undefined && prompt.trim() === "")
      throw new HarnessError(EXIT.usage, "--prompt is empty", 'harness batch --repos LIST --prompt "…"');
    const { readRows, rowsFile, rowsOfList } = await import("../../app/batch/batch-rows.ts");
    const text =
      file === "-"
        ? await pipedText(PIPED, { bytes: 64 * 2 ** 20, size: "64 MiB", exact: true })
        : await rowsFile(file);
    const title = file === "-" ? "stdin" : path.basename(file);
    const rows =
      repos === undefined ? readRows(text, title, { check }) : rowsOfList(text, title, { prompt, check });
    const source = file === "-" ? `stdin\n${prompt}` : path.resolve(file);
    return { rows, source, title };
  }
}

type IndexFlags = Parameters<typeof ownConfigFor>[0] &
  Parameters<typeof limitsFrom>[0] & {
    readonly out?: string | undefined;
    readonly runtime?: string | undefined;
    readonly json: boolean;
    readonly quiet: boolean;
  };

const budgetOf = ({
  ms,
  tokens,
  cost,
}: Pick<ReturnType<typeof limitsFrom>, "ms" | "tokens" | "cost">): BatchBudget => ({
  ...(ms === undefined ? {} : { ms }),
  ...(tokens === undefined ? {} : { tokens }),
  ...(cost === undefined ? {} : { cost }),
});

/** Checked before any row runs. */
async function requirePage(file: string): Promise<void> {
  const [{ requireReportPlace }, { REPORT_MARK }] = await Promise.all([
    import("../../app/sessions/report-file.ts"),
    import("../../render/html-page.ts"),
  ]);
  await requireReportPlace(file, REPORT_MARK);
}

function printResult(
  result: RowResult,
  nth: string,
  { json, quiet }: { readonly json: boolean; readonly quiet: boolean },
): void {
  if (json) answerJson(result);
  if (!quiet && !json) noteTo(false)(`${nth} ${rowLine(result)}`);
}
