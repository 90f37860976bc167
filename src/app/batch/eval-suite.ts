import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import * as z from "zod";
import { DURATION_FORM, parseDuration } from "../../core/wording.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";

const duration = z.string().refine((text) => parseDuration(text) !== undefined, `expected ${DURATION_FORM}`);

/** A path below a folder of the task. */
const below = z
  .string()
  .regex(/^(?!\/)(?!(?:.*\/)?\.\.(?:\/|$)).+$/, "expected a path inside the repository");

const taskForm = z.strictObject({
  /** The request to the model. */
  prompt: z.string().min(1),
  /** A shell command, run in a box over the workspace after the run; 0 means solved. */
  check: z.string().min(1),
  /** How long the check may take. */
  check_timeout: duration.default("2m"),
  language: z.string().min(1),
  /** The exit code that the run should end with. With any other, the task is not solved, whatever the check says. */
  exit: z.int().min(0).max(255).default(0),
  /** Files of `repo` that are restored before the check, so that changing them gains nothing. */
  restore: z.array(below).default([]),
  /** Where the run's answer is written for a check that examines it. */
  answer: below.optional(),
  /** Further words for `harness run`. */
  flags: z.array(z.string()).default([]),
  /** A shell command, run in a box over the workspace before the run, for what cannot be kept in `repo`. */
  setup: z.string().min(1).optional(),
  limits: z
    .strictObject({
      max_turns: z.int().positive().optional(),
      max_time: duration.optional(),
      max_tokens: z.int().positive().optional(),
    })
    .default({}),
});

export interface EvalTask extends z.output<typeof taskForm> {
  readonly name: string;
  /**
   * Holds `task.json`, and optionally `repo` (the workspace) and `check` (laid over the workspace before the check).
   */
  readonly folder: string;
}

/**
 * The tasks of a suite by name; `only` keeps the named ones. A task that cannot be read fails the whole suite, naming
 * its file.
 */
export async function readSuite(folder: string, only: readonly string[]): Promise<readonly EvalTask[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((thrown: unknown) => {
    throw new HarnessError(
      EXIT.usage,
      `the suite ${folder} cannot be read: ${reasonOf(thrown)}`,
      "a suite is a folder of tasks, each a folder with a task.json: docs/evals.md",
      thrown,
    );
  });
  const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const tasks = await Promise.all(names.toSorted().map((name) => readTask(folder, name)));
  const found = tasks.filter((task) => task !== undefined);
  const unknown = only.find((name) => !found.some((task) => task.name === name));
  if (unknown !== undefined)
    throw new HarnessError(
      EXIT.usage,
      `the suite ${folder} has no task ${unknown}`,
      `its tasks: ${found.map(({ name }) => name).join(", ") || "none"}`,
    );
  if (found.length === 0)
    throw new HarnessError(
      EXIT.usage,
      `the suite ${folder} has no tasks`,
      "each task is a folder with a task.json: docs/evals.md",
    );
  return only.length === 0 ? found : found.filter(({ name }) => only.includes(name));
}

async function readTask(suite: string, name: string): Promise<EvalTask | undefined> {
  const folder = path.resolve(suite, name);
  const file = path.join(folder, "task.json");
  const broken = (why: string, thrown?: unknown): HarnessError =>
    new HarnessError(EXIT.usage, `${file}: ${why}`, "docs/evals.md describes task.json", thrown);
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return undefined;
    throw broken(reasonOf(thrown), thrown);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    throw broken(reasonOf(thrown), thrown);
  }
  const read = taskForm.safeParse(value);
  if (!read.success)
    throw broken(
      read.error.issues.map((issue) => `${issue.path.join(".") || "it"}: ${issue.message}`).join("; "),
    );
  return { ...read.data, name, folder };
}

/** Whether the task has a folder of this name. */
export const hasFolder = async (task: EvalTask, name: string): Promise<boolean> =>
  (await stat(path.join(task.folder, name)).catch(() => undefined))?.isDirectory() ?? false;
