/**
 * Takes small projects from their files through `harness env build` to their own tests in the offline box. It needs the
 * registries that this machine's tools are configured for, so it is separate from the suites. `node
 * test/projects/main.ts go pip` tries only these; `published.ts` tries others' projects. Prints one line of Markdown
 * per project.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { SMALL_PROJECTS, type SmallProject } from "./small-projects.ts";

const HARNESS = path.join(import.meta.dirname, "..", "..", "bin", "harness");
const SETUP_MS = 1_200_000;
const TESTS_MS = 300_000;

interface ProgramResult {
  readonly ok: boolean;
  readonly seconds: number;
  readonly said: string;
}

function run(program: string, words: readonly string[], cwd: string, timeout: number): ProgramResult {
  const env = {
    ...process.env,
    XDG_STATE_HOME: path.join(top, "state"),
    XDG_CONFIG_HOME: path.join(top, "config"),
  };
  const began = performance.now();
  const { status, stdout, stderr } = spawnSync(program, words, { cwd, env, timeout, encoding: "utf8" });
  return { ok: status === 0, seconds: (performance.now() - began) / 1000, said: `${stdout}\n${stderr}` };
}

function makeProject(project: SmallProject): string {
  const folder = path.join(top, project.name.replaceAll(" ", "-"));
  for (const [name, text] of Object.entries(project.files)) {
    mkdirSync(path.join(folder, path.dirname(name)), { recursive: true });
    writeFileSync(path.join(folder, name), text);
  }
  if (project.lock === undefined) return folder;
  const tools = `${folder}-tools`;
  mkdirSync(tools);
  const line = `TOOLS=${tools}; ${project.lock}`;
  const locked = run("sh", ["-euc", line], folder, SETUP_MS);
  rmSync(tools, { recursive: true, force: true });
  if (!locked.ok) process.stderr.write(`${project.name}: no lock file: ${locked.said.slice(-1000)}\n`);
  return folder;
}

/** Runs in a copy: files that a tool creates beside the sources must not reach the box. */
function onHost(
  { host, tests: [program = "", ...words] }: SmallProject,
  folder: string,
): ProgramResult | undefined {
  if (host === null || spawnSync(host, ["--version"]).error !== undefined) return undefined;
  const copy = `${folder}-host`;
  cpSync(folder, copy, { recursive: true });
  // The first run fetches and compiles, like the set-up.
  run(
    program,
    words.filter((word) => word !== "-o"),
    copy,
    SETUP_MS,
  );
  return run(program, words, copy, TESTS_MS);
}

function sizeOf(folder: string): string {
  const line = run(HARNESS, ["env", "list", "--json"], folder, TESTS_MS)
    .said.split("\n")
    .find((text) => text.includes(`"workspace":${JSON.stringify(folder)}`));
  const { bytes = 0, system_bytes = 0 } = JSON.parse(line ?? "{}") as {
    bytes?: number;
    system_bytes?: number;
  };
  return [bytes, system_bytes]
    .map((size) => (size === null || size === 0 ? "–" : `${Math.round(size / 2 ** 20)} MB`))
    .join(" | ");
}

const shown = (ran: ProgramResult | undefined): string =>
  ran === undefined ? "–" : `${ran.ok ? "pass" : "FAIL"}, ${ran.seconds.toFixed(1)} s`;

function tried(project: SmallProject): boolean {
  const folder = makeProject(project);
  const built = run(HARNESS, ["env", "build", "--quiet"], folder, SETUP_MS);
  const size = built.ok ? sizeOf(folder) : "– | –";
  const words = ["sandbox", "exec", "--quiet", "--", ...project.tests];
  const box = built.ok ? run(HARNESS, words, folder, TESTS_MS) : undefined;
  const host = onHost(project, folder);
  process.stdout.write(
    `| ${project.name} | ${built.ok ? `${built.seconds.toFixed(0)} s` : "FAIL"} | ${size} | ${shown(box)} | ${shown(host)} |\n`,
  );
  const ok = built.ok && box?.ok === true;
  if (!ok) process.stderr.write(`${(box ?? built).said.slice(-3000)}\n`);
  return ok;
}

const top = mkdtempSync("/tmp/harness-projects-");
try {
  const names = process.argv.slice(2);
  const chosen = SMALL_PROJECTS.filter(({ name }) => names.length === 0 || names.includes(name));
  process.stdout.write(
    "| project | set-up | installed | system layer | tests in the box | on the host |\n| - | - | - | - | - | - |\n",
  );
  const green = chosen.map(tried).filter(Boolean).length;
  run(HARNESS, ["env", "rm", "--all"], top, TESTS_MS);
  if (green < chosen.length || chosen.length === 0) process.exitCode = 1;
} finally {
  rmSync(top, { recursive: true, force: true });
}
