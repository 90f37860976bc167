/**
 * `npm run test:projects [-- [--pairs N] NAME…]`: takes others' projects from their registries through `harness env
 * build` to their own tests in the offline box, compared with the same tests on this machine. Run by hand, apart from
 * the tests: it needs the registries and takes minutes per project. Exits with 1 if a project passes fewer tests in the
 * box than on the host. Prints the table of docs/environments.md, and with `--json` one line per project.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { chownSync, lchownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { PUBLISHED_PROJECTS, type PublishedProject } from "./published-projects.ts";

const HARNESS = path.join(import.meta.dirname, "../../bin/harness");
const MINUTE = 60_000;
/** The owner of the workspace when root runs this: a box over root's own files is another case. */
const ORDINARY = 1000;

interface Outcome {
  readonly name: string;
  readonly ecosystem: string;
  readonly set_up_s: number;
  readonly size: string;
  readonly passed: Compared;
  /** Duration of the suite alone, measured by its shell: starting and ending a box is not included. */
  readonly first_ms: Compared;
  /** A second run in the same shell, with its files cached. */
  readonly again_ms: Compared;
  /** Processor time of the second run, counted by the shell: other work of the machine is not included. */
  readonly cpu_ms: Compared;
  /** Load per processor at the end. */
  readonly load: number;
}

interface Compared {
  readonly host: number;
  readonly box: number;
  /** The ratio of the median pair. */
  readonly ratio: number;
}

interface Timed {
  readonly first: number;
  readonly again: number;
  readonly cpu: number;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "boolean", default: false }, pairs: { type: "string", default: "3" } },
});
/** Host and box run in turn; the median of their ratios counts. */
const PAIRS = Number(values.pairs);

const say = (text: string): void => console.error(text);

function sh(folder: string, script: string, env: NodeJS.ProcessEnv = process.env): string {
  return execFileSync("sh", ["-euc", script], {
    cwd: folder,
    env,
    encoding: "utf8",
    timeout: 15 * MINUTE,
    maxBuffer: 2 ** 28,
    stdio: ["ignore", "pipe", "pipe"],
  });
}

const MARK = "@measured";
/**
 * Runs the same line twice in one shell. The measurements are printed last, since the middle of a long output is
 * omitted.
 */
const timed = (test: string): string => `kept=$(mktemp); began=$(date +%s%N)
{ ${test}
}
between=$(date +%s%N); times >"$kept"
{ ${test}
}
ended=$(date +%s%N); times >>"$kept"
echo; echo ${MARK} $began $between $ended; sed -n 'n;p' "$kept"; rm -f "$kept"`;

/** The lines of `times` are for the shell's children: user and system. */
function measured(output: string): Timed {
  const [began = NaN, between = NaN, ended = NaN] =
    new RegExp(`^${MARK} (\\d+) (\\d+) (\\d+)$`, "m")
      .exec(output)
      ?.slice(1)
      .map((nanoseconds) => Number(nanoseconds) / 1e6) ?? [];
  const cpu = Array.from(
    output.slice(output.lastIndexOf(MARK)).matchAll(/^(\d+)m([\d.]+)s (\d+)m([\d.]+)s$/gm),
    ([, ...parts]) => parts.map(Number),
  ).map(([minutes = NaN, seconds = NaN, more = NaN, rest = NaN]) => (minutes + more) * 60 + seconds + rest);
  const times = {
    first: between - began,
    again: ended - between,
    cpu: ((cpu[1] ?? NaN) - (cpu[0] ?? NaN)) * 1000,
  };
  if (Object.values(times).some(Number.isNaN))
    throw new Error(`nothing was measured: ${output.slice(-2000)}`);
  return times;
}

function onHost(script: string, folder: string): { readonly out: string; readonly err: string } {
  const options = { cwd: folder, encoding: "utf8", timeout: 15 * MINUTE, maxBuffer: 2 ** 28 } as const;
  const { stdout, stderr } = spawnSync("sh", ["-c", script], options);
  return { out: stdout, err: stderr };
}

const middle = (values: readonly number[]): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? NaN;

const compared = (pairs: readonly { readonly host: number; readonly box: number }[]): Compared => ({
  host: Math.round(middle(pairs.map(({ host }) => host))),
  box: Math.round(middle(pairs.map(({ box }) => box))),
  ratio: Math.round(middle(pairs.map(({ host, box }) => box / host)) * 100) / 100,
});

function harness(place: Place, words: readonly string[]): { code: number | null; out: string; err: string } {
  const ran = spawnSync(HARNESS, [...words], {
    cwd: place.workspace,
    env: {
      ...process.env,
      XDG_STATE_HOME: path.join(place.folder, "state"),
      XDG_CONFIG_HOME: path.join(place.folder, "config"),
    },
    encoding: "utf8",
    timeout: 30 * MINUTE,
    maxBuffer: 2 ** 28,
  });
  return { code: ran.status, out: ran.stdout, err: ran.stderr };
}

interface Place {
  readonly folder: string;
  readonly workspace: string;
}

/** Runs in a box with its default number of processors. */
function inBox(script: string, place: Place, flags: readonly string[]): ReturnType<typeof harness> {
  const bounds = ["--timeout", "30m", "--memory", "4g"];
  const ran = harness(place, ["sandbox", "exec", ...bounds, ...flags, "--", "sh", "-c", script]);
  if (ran.code === NO_BOX) throw new Error(ran.err.slice(-2000));
  return ran;
}

const NO_BOX = 125;

/** Gives all entries away; links are not followed. */
function giveAway(folder: string): void {
  if (process.getuid?.() !== 0) return;
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" }))
    lchownSync(path.join(folder, name), ORDINARY, ORDINARY);
  chownSync(folder, ORDINARY, ORDINARY);
}

const lacking = ({ needs }: PublishedProject): readonly string[] =>
  needs.filter((program) => spawnSync("sh", ["-c", `command -v ${program}`]).status !== 0);

function tried(project: PublishedProject): Outcome {
  const folder = mkdtempSync(path.join(tmpdir(), "harness-project-"));
  const place = { folder, workspace: path.join(folder, "project") };
  try {
    mkdirSync(place.workspace);
    sh(place.workspace, project.get);
    sh(
      place.workspace,
      "git init -q . && git add -A && git -c user.name=t -c user.email=t@t commit -qm as-published",
    );
    const host = path.join(folder, "host");
    sh(folder, "cp -a project host");
    sh(host, project.onHost);
    giveAway(place.workspace);
    const flags = recipeFlags(project, place);
    const began = performance.now();
    const built = harness(place, ["env", "build", ...flags]);
    if (built.code !== 0) throw new Error(`env build ended with ${built.code}:\n${built.err.slice(-3000)}`);
    const seconds = Math.round((performance.now() - began) / 1000);
    const counted = ({ out, err }: { readonly out: string; readonly err: string }): number =>
      project.passed(`${out}\n${err}`);
    // Tests may fail on the host, too: what counts is whether the box does worse.
    const passed = {
      host: counted(onHost(project.test, host)),
      box: counted(inBox(project.test, place, flags)),
    };
    const script = timed(project.test);
    const pairs = Array.from({ length: PAIRS }, () => ({
      host: measured(onHost(script, host).out),
      box: measured(inBox(script, place, flags).out),
    }));
    const of = (what: keyof Timed): Compared =>
      compared(pairs.map((pair) => ({ host: pair.host[what], box: pair.box[what] })));
    const { name, ecosystem } = project;
    return {
      name,
      ecosystem,
      set_up_s: seconds,
      size: sizeOf(place),
      passed: { ...passed, ratio: passed.box / passed.host },
      first_ms: of("first"),
      again_ms: of("again"),
      cpu_ms: of("cpu"),
      load: Math.round(((loadavg()[0] ?? 0) / availableParallelism()) * 10) / 10,
    };
  } finally {
    harness(place, ["env", "rm", "--all"]);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A user's recipe lies beside the settings. */
function recipeFlags({ recipe }: PublishedProject, { folder }: Place): readonly string[] {
  if (recipe === undefined) return [];
  const environments = path.join(folder, "config/harness/environments");
  mkdirSync(environments, { recursive: true });
  writeFileSync(path.join(environments, "project.json"), JSON.stringify(recipe));
  return ["--env", "project"];
}

/** The size of the environment's volumes and of its system layer. */
function sizeOf(place: Place): string {
  const [line = "{}"] = harness(place, ["env", "list", "--json"]).out.split("\n");
  const { bytes, system_bytes } = JSON.parse(line) as { bytes?: number; system_bytes?: number };
  return [bytes, system_bytes].map((size) => `${Math.round((size ?? 0) / 2 ** 20)} MB`).join(" + ");
}

const chosen = PUBLISHED_PROJECTS.filter(
  ({ name }) => positionals.length === 0 || positionals.includes(name),
);
const outcomes: Outcome[] = [];
const failed: string[] = [];
for (const project of chosen) {
  const lacks = lacking(project);
  if (lacks.length > 0) {
    say(`${project.name}: left out, as this machine has no ${lacks.join(", ")}`);
    continue;
  }
  say(`${project.name} …`);
  try {
    const outcome = tried(project);
    outcomes.push(outcome);
    if (outcome.passed.box < outcome.passed.host || outcome.passed.box === 0) failed.push(project.name);
    if (values.json) console.log(JSON.stringify(outcome));
    else say(JSON.stringify(outcome));
  } catch (thrown) {
    failed.push(project.name);
    say(`${project.name}: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
  }
}

const row = (outcome: Outcome): string => {
  const {
    name,
    ecosystem,
    set_up_s: seconds,
    size,
    passed,
    first_ms: first,
    again_ms: again,
    cpu_ms: cpu,
  } = outcome;
  const cells = [name, ecosystem, `${seconds} s`, size, passed.host, passed.box];
  const ratios = [again, first, cpu].map(({ ratio }) => ratio.toFixed(2));
  return `| ${[...cells, ...ratios, outcome.load].join(" | ")} |`;
};

if (!values.json && outcomes.length > 0) {
  console.log(
    "| project | ecosystem | set-up | volumes + system layer | passed on the host | in the box | time, box to host | in a fresh box | of the processor | load |",
  );
  console.log(`|${" --- |".repeat(10)}`);
  for (const outcome of outcomes) console.log(row(outcome));
}
if (failed.length > 0) say(`worse in the box, or not tried to the end: ${failed.join(", ")}`);
process.exitCode = failed.length > 0 || outcomes.length === 0 ? 1 : 0;
