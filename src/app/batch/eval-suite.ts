/** A suite of tasks for `harness eval`: read as a whole before anything runs, and laid out in a run's workspace. */
import { constants, type Stats } from "node:fs";
import {
  copyFile,
  cp,
  lstat,
  mkdir,
  readdir,
  readlink,
  realpath,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import path from "node:path";
import * as z from "zod";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { parseUniqueJson } from "../../core/text/json-text.ts";
import { withoutMark } from "../../core/raw-data.ts";
import { visibleLine } from "../../core/visible.ts";
import { truncate, DURATION_FORM, parseDuration } from "../../core/wording.ts";
import { readRegular } from "../../platform/safe-files.ts";
import { MAX_PROMPT_BYTES, MAX_WORD_BYTES } from "./batch-rows.ts";

const duration = z.string().refine((text) => parseDuration(text) !== undefined, `expected ${DURATION_FORM}`);

/** Passed to a program as one of its arguments. */
const argument = z
  .string()
  .min(1)
  .refine((text) => !text.includes("\0"), "expected text without a NUL")
  .refine((text) => Buffer.byteLength(text) <= MAX_WORD_BYTES, "it is longer than 64 KiB");

const BELOW = "expected a path inside the repository";

/** A file below a folder of the task, without detours. */
const below = z
  .string()
  .refine((text) => !text.includes("\0") && !text.endsWith("/"), BELOW)
  .transform((text) => path.posix.normalize(text))
  .refine((text) => !path.isAbsolute(text) && !/^\.{0,2}(?:\/|$)/.test(text), BELOW);

const taskForm = z.strictObject({
  /** The request to the model. */
  prompt: z
    .string()
    .refine((text) => text.trim() !== "", "expected a task, found nothing")
    .refine((text) => Buffer.byteLength(text) <= MAX_PROMPT_BYTES, "it is longer than 1 MiB"),
  /** A shell command, run in a box over the workspace after the run; 0 means solved. */
  check: argument,
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
  flags: z.array(argument).max(100).default([]),
  /** A shell command, run in a box over the workspace before the run, for what cannot be kept in `repo`. */
  setup: argument.optional(),
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
  let value: unknown;
  try {
    const text = (await readRegular(file, { links: "follow", max: MAX_TASK })).toString("utf8");
    value = parseUniqueJson(withoutMark(text));
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return undefined;
    throw broken(visibleLine(reasonOf(thrown)), thrown);
  }
  const read = taskForm.safeParse(value, { error: asExpected });
  if (!read.success)
    throw broken(
      read.error.issues.map((issue) => `${issue.path.join(".") || "it"}: ${issue.message}`).join("; "),
    );
  const task = { ...read.data, name, folder };
  for (const each of task.restore)
    if (!isLaid(await lstat(path.join(folder, "repo", each)).catch(() => undefined)))
      throw broken(`restore: ${JSON.stringify(each)} is not a file of its repo`);
  return task;
}

/** In bytes. The longest parts of a task have limits of their own. */
const MAX_TASK = 4 * 2 ** 20;

/** For values of another type; undefined leaves zod's own message. */
const asExpected = ({ code, expected, input }: z.core.$ZodRawIssue): string | undefined =>
  code === "invalid_type" ? `expected ${String(expected)}, found ${shownValue(input)}` : undefined;

const shownValue = (value: unknown): string => truncate(JSON.stringify(value) ?? "nothing", 80);

/** The real path of a folder of the task, which may be a link; undefined if the task has none. */
async function folderOf(task: EvalTask, name: string): Promise<string | undefined> {
  const folder = await realpath(path.join(task.folder, name)).catch(() => undefined);
  return folder !== undefined && (await lstat(folder)).isDirectory() ? folder : undefined;
}

/** Whether the task has a folder of this name. */
export const hasFolder = async (task: EvalTask, name: string): Promise<boolean> =>
  (await folderOf(task, name)) !== undefined;

/** Only files and links can be laid into a workspace. */
const isLaid = (found: Stats | undefined): boolean =>
  found !== undefined && (found.isFile() || found.isSymbolicLink());

/** Copies the task's repository; links stay as they are, because their targets are copied along. */
export async function layRepository(task: EvalTask, workspace: string): Promise<void> {
  const repository = await folderOf(task, "repo");
  if (repository === undefined) return;
  try {
    await cp(repository, workspace, { recursive: true, verbatimSymlinks: true });
  } catch (thrown) {
    throw new HarnessError(
      EXIT.usage,
      `${task.name}: its repo cannot be copied: ${reasonOf(thrown)}`,
      `a repo contains only files, folders and links: ls -l ${repository}`,
      thrown,
    );
  }
}

/** Lays the files that the check needs, and restores those that it must find unchanged. */
export async function layForCheck(task: EvalTask, workspace: string, answer: string): Promise<void> {
  for (const file of task.restore) await lay(path.join(task.folder, "repo", file), workspace, file);
  const checks = await folderOf(task, "check");
  if (checks !== undefined)
    for (const file of await readdir(checks, { recursive: true }))
      if (isLaid(await lstat(path.join(checks, file)))) await lay(path.join(checks, file), workspace, file);
  if (task.answer === undefined) return;
  await clearWay(workspace, task.answer);
  await writeFile(path.join(workspace, task.answer), answer, { flag: "wx" });
}

async function lay(from: string, workspace: string, file: string): Promise<void> {
  await clearWay(workspace, file);
  const to = path.join(workspace, file);
  if ((await lstat(from)).isSymbolicLink()) await symlink(await readlink(from), to);
  else await copyFile(from, to, constants.COPYFILE_EXCL);
}

/** The run may have left links on the way that lead out of the workspace: none is followed. */
async function clearWay(workspace: string, file: string): Promise<void> {
  let at = workspace;
  for (const name of path.dirname(file).split(path.sep)) {
    at = path.join(at, name);
    const plain = await lstat(at).catch(() => undefined);
    if (plain?.isDirectory() === true) continue;
    if (plain !== undefined) await rm(at, { force: true });
    await mkdir(at);
  }
  await rm(path.join(workspace, file), { recursive: true, force: true });
}
