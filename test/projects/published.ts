/**
 * `npm run test:projects [-- NAME…]`: projects of others, each from how its registry publishes it through `harness env build` to
 * its own tests in the offline box, beside the same tests on this machine. By hand, beside the tests: it needs the
 * registries and takes minutes for each. It ends with 1 where a project passes fewer tests in the box than on the host.
 * Prints the table of docs/environments.md, and with `--json` a line for each project.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { chownSync, lchownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { PUBLISHED_PROJECTS, type PublishedProject } from "./published-projects.ts";

const HARNESS = path.join(import.meta.dirname, "../../bin/harness");
const MINUTE = 60_000;
/** In turn here and in the box. The shortest of these counts: what else runs here only ever adds. */
const RUNS = 4;
/** Whose the workspace is when root runs this: a box over root's own files is another case. */
const ORDINARY = 1000;

interface Outcome {
  readonly name: string;
  readonly ecosystem: string;
  readonly set_up_s: number;
  readonly size: string;
  readonly host: Tested;
  readonly box: Tested;
}

interface Tested {
  readonly passed: number;
  readonly ms: number;
  /** Of the processor, by the shell's own count: what else the machine does is not in it. */
  readonly cpu_ms: number;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "boolean", default: false } },
});

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

const TIMES = "@times";
const timed = (test: string): string => `{ ${test}\n} ; echo; echo ${TIMES}; times`;

/** The second line is of the shell's children: user and system. */
function cpuOf(output: string): number {
  const [, ...parts] =
    new RegExp(`${TIMES}\\n.*\\n(\\d+)m([\\d.]+)s (\\d+)m([\\d.]+)s`).exec(output)?.map(Number) ?? [];
  const [minutes = NaN, seconds = NaN, more = NaN, rest = NaN] = parts;
  return Math.round(((minutes + more) * 60 + seconds + rest) * 1000);
}

/** Tests may be red on the host, too: what counts is whether the box does worse. */
function testedOnHost({ test, passed }: PublishedProject, folder: string): Tested {
  const began = performance.now();
  const ran = spawnSync("sh", ["-c", timed(test)], {
    cwd: folder,
    encoding: "utf8",
    timeout: 15 * MINUTE,
    maxBuffer: 2 ** 28,
  });
  const ms = performance.now() - began;
  return { passed: passed(`${ran.stdout}\n${ran.stderr}`), ms, cpu_ms: cpuOf(ran.stdout) };
}

const best = (runs: readonly Tested[]): Tested => ({
  passed: Math.max(...runs.map((run) => run.passed)),
  ms: Math.round(Math.min(...runs.map((run) => run.ms))),
  cpu_ms: Math.min(...runs.map((run) => run.cpu_ms)),
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

interface Ended {
  readonly duration_ms: number;
  readonly stdout: string;
}

const boxWords = (
  { test }: PublishedProject,
  flags: readonly string[],
  json: readonly string[],
): readonly string[] => {
  const bounds = ["--timeout", "15m", "--memory", "4g", "--cpus", String(availableParallelism())];
  return ["sandbox", "exec", ...json, ...bounds, ...flags, "--", "sh", "-c", timed(test)];
};

/** Where all of the output comes. */
function countedInBox(project: PublishedProject, place: Place, flags: readonly string[]): number {
  const { code, out, err } = harness(place, boxWords(project, flags, []));
  if (code === NO_BOX) throw new Error(err.slice(-2000));
  return project.passed(`${out}\n${err}`);
}

/** Timed by the runner's own clock, without the box's start and end. */
function testedInBox(project: PublishedProject, place: Place, flags: readonly string[]): Tested {
  const ended = JSON.parse(harness(place, boxWords(project, flags, ["--json"])).out) as Ended;
  return { passed: 0, ms: ended.duration_ms, cpu_ms: cpuOf(ended.stdout) };
}

const NO_BOX = 125;

/** Whatever stands there: links as themselves. */
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
    const passed = countedInBox(project, place, flags);
    const runs = Array.from({ length: RUNS }, () => ({
      host: testedOnHost(project, host),
      box: testedInBox(project, place, flags),
    }));
    const { name, ecosystem } = project;
    return {
      name,
      ecosystem,
      set_up_s: seconds,
      size: sizeOf(place),
      host: best(runs.map((run) => run.host)),
      box: { ...best(runs.map((run) => run.box)), passed },
    };
  } finally {
    harness(place, ["env", "rm", "--all"]);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A recipe of the user's stands beside the settings. */
function recipeFlags({ recipe }: PublishedProject, { folder }: Place): readonly string[] {
  if (recipe === undefined) return [];
  const environments = path.join(folder, "config/harness/environments");
  mkdirSync(environments, { recursive: true });
  writeFileSync(path.join(environments, "project.json"), JSON.stringify(recipe));
  return ["--env", "project"];
}

/** Of its volumes and of the system layer. */
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
    if (outcome.box.passed < outcome.host.passed || outcome.box.passed === 0) failed.push(project.name);
    if (values.json) console.log(JSON.stringify(outcome));
    else say(JSON.stringify(outcome));
  } catch (thrown) {
    failed.push(project.name);
    say(`${project.name}: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
  }
}

const row = ({ name, ecosystem, set_up_s: seconds, size, host, box }: Outcome): string =>
  `| ${name} | ${ecosystem} | ${seconds} s | ${size} | ${host.passed} | ${box.passed} | ${(box.ms / host.ms).toFixed(2)} | ${(box.cpu_ms / host.cpu_ms).toFixed(2)} |`;

if (!values.json && outcomes.length > 0) {
  console.log(
    "| project | ecosystem | set-up | size | tests passed on the host | in the box | time, box to host | processor time |",
  );
  console.log("| --- | --- | --- | --- | --- | --- | --- | --- |");
  for (const outcome of outcomes) console.log(row(outcome));
}
if (failed.length > 0) say(`worse in the box, or not tried to the end: ${failed.join(", ")}`);
process.exitCode = failed.length > 0 || outcomes.length === 0 ? 1 : 0;
