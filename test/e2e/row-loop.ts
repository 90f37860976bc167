import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { parseAllDocuments } from "yaml";
import { rowResultForm, type RowResult } from "../../src/render/batch-results.ts";
import type { ConfigMap, Job } from "../../src/kubernetes/cluster.ts";
import { image } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { rowsText } from "./batch.ts";
import { harness, type RunStart } from "./run-command.ts";

/** Runs a loop as its Job specifies, with its box at an API server whose pods are containers. */

export const KUBERNETES = {
  image,
  loop_image: "registry.example/harness-loop:1",
  results_claim: "results",
  model_secret: "model",
  start_timeout: "60s",
};

export interface LoopManifest {
  readonly text: string;
  /** What the Job gives to the loop: words after the folder of its rows, and variables. */
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Where the results go: for a volume, its path in the pod. */
  readonly out: string;
  /** The files that the loop reads, by name. */
  readonly rows: Readonly<Record<string, string>>;
}

/** The printed manifests of a batch with one row, for a user with the environment `env`. */
export async function printed(
  place: Scratch,
  row: object,
  env: Readonly<Record<string, string>>,
  flags: readonly string[] = [],
): Promise<LoopManifest> {
  const tasks = await place.write("tasks.jsonl", rowsText([row]));
  const words = ["batch", tasks, "--on", "kubernetes:/team", "--print-manifests", ...flags];
  const { code, stdout, stderr } = await harness(place, words, { env });
  assert.equal(code, 0, stderr);
  return readPrinted(stdout);
}

/** Reads the loop's part of the `--print-manifests` output. */
export function readPrinted(stdout: string): LoopManifest {
  const objects = parseAllDocuments(stdout).map((each) => each.toJS() as Job | ConfigMap);
  const job = objects.find((each): each is Job => each.kind === "Job");
  const maps = objects.filter((each): each is ConfigMap => each.kind === "ConfigMap");
  const [loop] = job?.spec?.template.spec?.containers ?? [];
  assert.ok(loop !== undefined);
  const rows = Object.assign({}, ...maps.map(({ data }) => data)) as LoopManifest["rows"];
  const own = /^(?:HOME|TMPDIR|XDG_.*)$/;
  const said = (loop.env ?? []).flatMap(({ name, value }) =>
    value === undefined || own.test(name) ? [] : [[name, value] as const],
  );
  const kept = (loop.args ?? []).filter((word) => /^--(?!index|tree|out|told)/.test(word));
  const out = (loop.args ?? []).find((word) => word.startsWith("--out="))?.slice("--out=".length) ?? "";
  return { text: stdout, words: kept, env: Object.fromEntries(said), out, rows };
}

/** The innermost child process: for a loop, the run of its row. */
function startedBy(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return children === "" ? pid : startedBy(Number(children.split(" ")[0]));
}

export const killRun = ({ pid }: ChildProcess): void =>
  void process.kill(startedBy(pid ?? assert.fail()), "SIGKILL");

export interface Looped {
  readonly code: number | null;
  readonly told: RowResult;
  readonly said: string;
  readonly results: string;
}

/** Runs the loop as its pod does, over an existing clone; results that go to no bucket go to a separate folder. */
export async function loop(
  place: Scratch,
  { words, env, out, rows }: LoopManifest,
  secret: Readonly<Record<string, string>>,
  name: string,
  whenMade?: NonNullable<RunStart["whenMade"]>,
): Promise<Looped> {
  for (const [file, text] of Object.entries(rows)) await place.write(`rows/${file}`, text);
  const pod = { HARNESS_POD_NAME: name, HARNESS_POD_NAMESPACE: "team", HARNESS_POD_UID: `uid-of-${name}` };
  const kubeconfig = { KUBECONFIG: place.at("kubeconfig") };
  const results = out.startsWith("s3:") ? out : place.at(name);
  const own = ["--index=0", `--tree=${place.at("tree")}`, `--out=${results}`, `--told=${place.at("told")}`];
  const start = {
    env: { ...secret, ...env, ...pod, ...kubeconfig },
    ...(whenMade === undefined ? {} : { whenMade }),
  };
  const { code, stdout, stderr } = await harness(place, ["batch", place.at("rows"), ...own, ...words], start);
  const told = rowResultForm.parse(JSON.parse(await readFile(place.at("told"), "utf8")));
  return { code, told, said: stdout + stderr, results };
}
