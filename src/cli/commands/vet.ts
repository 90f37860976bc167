import { Args, Flags } from "@oclif/core";
import { untilInterrupted } from "../../app/interruption.ts";
import { noteText } from "../../app/stderr-messages.ts";
import type { VetOptions } from "../../app/vet/vet-box.ts";
import { DURATION_FORM, parseDuration } from "../../core/wording.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { boxFlags, ownConfigFor } from "../settings.ts";
import { stderr, stdout } from "../../render/tty/output.ts";
import { ProgressLine } from "../../render/tty/live-lines.ts";
import { comparisonText, vetText } from "../../render/repository-lines.ts";
import type { VetComparison, VetReport } from "../../core/behaviour.ts";

const MINUTE_MS = 60_000;
const MAX_TIME = 10 * MINUTE_MS;

export class Vet extends HarnessCommand {
  static override summary =
    "Show what a repository would do: its files, and what its commands do in a locked box.";
  static override description =
    "REPO is a folder, an archive or a Git address; archives are unpacked and addresses are cloned in a box. The commands that install, build and test the repository, or yours after --, run in a copy-on-write layer without a network (except for --allow-domain) and without anything of yours. The folder stays as it is, and what it brings for harness does not count. Ends with 0 if the repository was quiet, 30 if noisy, 40 if hostile.";
  static override usage = "vet [FLAGS] REPO [-- CMD...]";
  static override args = {
    repo: Args.string({
      description: "folder, archive, or https://HOST/OWNER/NAME[#REF]",
      ignoreStdin: true,
    }),
    other: Args.string({
      description: "with --compare: what to compare the first one with",
      ignoreStdin: true,
    }),
  };
  static override flags = {
    compare: Flags.boolean({
      description:
        "compare two repositories, two lock files or two --json answers; what is new in the second one decides",
      exclusive: ["diff"],
    }),
    diff: Flags.string({
      description:
        "compare two commits of a repository: what the later one brings, and the commands that it affects",
      helpValue: "BASE..HEAD",
    }),
    html: Flags.string({ description: "write the report as an HTML page (-: stdout)", helpValue: "FILE" }),
    engine: boxFlags.engine,
    image: boxFlags.image,
    env: boxFlags.env,
    "allow-domain": boxFlags["allow-domain"],
    memory: boxFlags.memory,
    cpus: boxFlags.cpus,
    pids: boxFlags.pids,
    runtime: boxFlags.runtime,
    isolation: boxFlags.isolation,
    timeout: boxFlags.timeout,
    "max-time": Flags.string({
      description: "time limit for looking at the files and for all commands together (10m)",
      helpGroup: "BOX",
      helpValue: "10m",
    }),
  };
  static override examples = [
    "harness vet .",
    "harness vet --json left-pad-1.3.0.tgz | jq .verdict",
    "harness vet https://github.com/owner/name -- make install",
    "harness vet --diff main...HEAD .",
    "harness vet --compare left-pad-1.2.0.tgz left-pad-1.3.0.tgz",
    "harness vet --compare old/package-lock.json package-lock.json",
  ];

  async run(): Promise<void> {
    // Words after -- never go through the parser.
    const dashes = this.argv.indexOf("--");
    const words = dashes === -1 ? null : this.argv.slice(dashes + 1);
    const { args, flags } = await this.parse(Vet, dashes === -1 ? this.argv : this.argv.slice(0, dashes));
    const { repo: name, other } = args;
    refuseMixed(flags, { name, other, words });
    const chosen = await this.#options(flags);
    const page = flags.html === undefined || flags.html === "-" ? undefined : await pageAt(flags.html);
    await untilInterrupted(async (signal) => {
      using progress = new ProgressLine(stderr, { what: "vet", quiet: flags.quiet });
      const warn = (text: string): void => void (flags.quiet || progress.write(noteText(text)));
      const options = { ...chosen, onProgress: progress.take, warn };
      const result = flags.compare
        ? await compareVersions(options, [name ?? "", other ?? ""], signal)
        : await reported(options, { range: flags.diff, name: name ?? ".", words }, signal);
      signal.throwIfAborted();
      progress.end();
      if (flags.html === "-") answer(result.page());
      if (flags.json) answerJson(result.value);
      else if (flags.html !== "-") answer(result.text());
      process.exitCode = result.value.exit_code;
      await page?.(result.page());
    }, "");
  }

  async #options(
    flags: Readonly<Record<string, unknown>> & { readonly quiet: boolean },
  ): Promise<Omit<VetOptions, "onProgress" | "warn">> {
    // Only this command's grants and environment count.
    const { settings } = await ownConfigFor({ ...flags, "allow-domain": flags["allow-domain"] ?? [] });
    const typed = flags["max-time"];
    const maxMs = typeof typed === "string" ? parseDuration(typed) : MAX_TIME;
    if (maxMs === undefined || maxMs === 0)
      throw new HarnessError(
        EXIT.usage,
        `--max-time: expected ${DURATION_FORM}, found ${JSON.stringify(typed)}`,
        "harness vet --max-time 5m .",
      );
    return {
      host: this.host,
      settings: { ...settings, env: typeof flags["env"] === "string" ? flags["env"] : "none" },
      runtime: typeof flags["runtime"] === "string" ? flags["runtime"] : null,
      maxMs,
    };
  }
}

interface VetOutput {
  readonly value: VetReport | VetComparison;
  readonly text: () => string;
  readonly page: () => string;
}

interface VetTarget {
  readonly range: string | undefined;
  readonly name: string;
  readonly words: readonly string[] | null;
}

async function reported(
  options: VetOptions,
  { range, name, words }: VetTarget,
  signal: AbortSignal,
): Promise<VetOutput> {
  const value = await (async (): Promise<VetReport> => {
    if (range === undefined) {
      const { vetRepository } = await import("../../app/vet/vet-repository.ts");
      return vetRepository(options, { name, command: words }, signal);
    }
    const { vetDiff } = await import("../../app/vet/vet-diff.ts");
    return vetDiff(options, { range, name }, signal);
  })();
  const { vetPage } = await import("../../render/result-pages.ts");
  return { value, text: () => vetText(value, stdout), page: () => vetPage(value) };
}

async function compareVersions(
  options: VetOptions,
  both: readonly [string, string],
  signal: AbortSignal,
): Promise<VetOutput> {
  const { vetCompared } = await import("../../app/vet/vet-diff.ts");
  const value = await vetCompared(options, both, signal);
  const { comparisonPage } = await import("../../render/result-pages.ts");
  return { value, text: () => comparisonText(value, stdout), page: () => comparisonPage(value) };
}

/** Returns a writer of the page; an unusable name is refused before anything is examined. */
async function pageAt(file: string): Promise<(page: string) => Promise<void>> {
  const [{ requireReportPlace, writeReport }, { REPORT_MARK }] = await Promise.all([
    import("../../app/sessions/report-file.ts"),
    import("../../render/html-page.ts"),
  ]);
  await requireReportPlace(file, REPORT_MARK);
  return (page) => writeReport(file, page, REPORT_MARK);
}

interface Named {
  readonly name: string | undefined;
  readonly other: string | undefined;
  readonly words: readonly string[] | null;
}

interface VetFlags {
  readonly compare: boolean;
  readonly diff?: string | undefined;
}

/** Combinations that are refused, each with an alternative. */
function refuseMixed({ compare, diff }: VetFlags, { name, other, words }: Named): void {
  const several = compare || diff !== undefined;
  const rows: readonly (readonly [wrong: boolean, why: string, next: string])[] = [
    [words?.length === 0, "there is no command after --", "harness vet . -- make"],
    [
      compare && (name === undefined || other === undefined),
      "--compare needs two things to compare",
      "harness vet --compare OLD NEW",
    ],
    [
      !compare && other !== undefined,
      "only one repository can be examined at a time",
      "harness vet --compare OLD NEW",
    ],
    [
      name === undefined && diff === undefined,
      "no repository was given",
      "harness vet FOLDER   (or an archive, or https://HOST/OWNER/NAME)",
    ],
    [
      several && words !== null,
      "a command cannot be combined with --compare or --diff",
      "harness vet FOLDER -- make",
    ],
  ];
  const found = rows.find(([wrong]) => wrong);
  if (found !== undefined) throw new HarnessError(EXIT.usage, found[1], found[2]);
}
