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
/** The shortest of these counts: what else runs here only ever adds. */
const RUNS = 3;
/** Whose the workspace is when root runs this: a box over root's own files is another case. */
const ORDINARY = 1000;

interface Outcome {
  readonly name: string;
  readonly ecosystem: string;
  readonly set_up_s: number;
  readonly size: string;
  readonly host: { readonly passed: number; readonly ms: number };
  readonly box: { readonly passed: number; readonly ms: number };
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

/** Tests may be red on the host, too: what counts is whether the box does worse. */
function testedOnHost({ test, passed }: PublishedProject, folder: string): Outcome["host"] {
  const runs = Array.from({ length: RUNS }, () => {
    const began = performance.now();
    const ran = spawnSync("sh", ["-c", test], {
      cwd: folder,
      encoding: "utf8",
      timeout: 15 * MINUTE,
      maxBuffer: 2 ** 28,
    });
    return { passed: passed(`${ran.stdout}\n${ran.stderr}`), ms: performance.now() - began };
  });
  return best(runs);
}

const best = (runs: readonly Outcome["host"][]): Outcome["host"] => ({
  passed: Math.max(...runs.map((run) => run.passed)),
  ms: Math.round(Math.min(...runs.map((run) => run.ms))),
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
}

/** Counted where all of the output comes, timed by the runner's own clock, without the box's start and end. */
function testedInBox(
  { test, passed }: PublishedProject,
  place: Place,
  flags: readonly string[],
): Outcome["box"] {
  const words = (json: readonly string[]): readonly string[] => {
    const bounds = ["--timeout", "15m", "--memory", "4g", "--cpus", String(availableParallelism())];
    return ["sandbox", "exec", ...json, ...bounds, ...flags, "--", "sh", "-c", test];
  };
  const { code, out, err } = harness(place, words([]));
  if (code === NO_BOX) throw new Error(err.slice(-2000));
  const runs = Array.from({ length: RUNS }, () => {
    const ended = JSON.parse(harness(place, words(["--json"])).out) as Ended;
    return { passed: passed(`${out}\n${err}`), ms: ended.duration_ms };
  });
  return best(runs);
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
    const onHost = testedOnHost(project, host);
    giveAway(place.workspace);
    const flags = recipeFlags(project, place);
    const began = performance.now();
    const built = harness(place, ["env", "build", ...flags]);
    if (built.code !== 0) throw new Error(`env build ended with ${built.code}:\n${built.err.slice(-3000)}`);
    const seconds = Math.round((performance.now() - began) / 1000);
    const box = testedInBox(project, place, flags);
    const { name, ecosystem } = project;
    return { name, ecosystem, set_up_s: seconds, size: sizeOf(place), host: onHost, box };
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
  `| ${name} | ${ecosystem} | ${seconds} s | ${size} | ${host.passed} | ${box.passed} | ${(box.ms / host.ms).toFixed(2)} |`;

if (!values.json && outcomes.length > 0) {
  console.log(
    "| project | ecosystem | set-up | size | tests passed on the host | in the box | time, box to host |",
  );
  console.log("| --- | --- | --- | --- | --- | --- | --- |");
  for (const outcome of outcomes) console.log(row(outcome));
}
if (failed.length > 0) say(`worse in the box, or not tried to the end: ${failed.join(", ")}`);
process.exitCode = failed.length > 0 || outcomes.length === 0 ? 1 : 0;
