import { lstat } from "node:fs/promises";
import { HarnessError, reasonOf } from "../../core/errors.ts";
import type { Engine } from "../engine.ts";
import { commitPlan } from "../protect/commit.ts";
import { commitIdentity } from "../protect/identity.ts";
import { within } from "../protect/mounts.ts";
import { findRepository, type FoundRepository } from "../protect/repository.ts";
import { decodeFields, encodeFields } from "../runner/fields.ts";
import { textOfBytes } from "../../core/byte-text.ts";
import type { BoxPlan } from "../spec.ts";
import { type Door, verifiedContainer } from "./container.ts";
import { startCommand } from "./exec.ts";

export interface DoorRequest {
  readonly engine: Engine;
  /** Of the box that asks. */
  readonly plan: BoxPlan;
  readonly home: string;
}

interface Asked {
  readonly folder: string;
  readonly words: readonly string[];
  /** `name=value`, as git's own -c takes it. */
  readonly config: readonly string[];
}

interface Answer {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Told to our git in the box: this repository is not protected, so the real one can do it. */
const DO_IT_YOURSELF: Answer = { code: 0xffff, stdout: "", stderr: "" };
const KEEP = { head: 16 * 1024, tail: 16 * 1024 };
const COMMIT_MS = 120_000;

/** Makes `git add` and `git commit` for the commands of a box, one after the other, in a container of their own. */
export function commitDoor(request: DoorRequest): Door {
  let last: Promise<unknown> = Promise.resolve();
  return (asked) => {
    const answer = last.then(() => answerTo(request, asked));
    last = answer;
    return answer;
  };
}

async function answerTo(request: DoorRequest, asked: Buffer): Promise<Buffer> {
  const { code, stdout, stderr } = await made(request, asked).catch(refused);
  return encodeFields([
    ["c", code],
    ["o", Buffer.from(stdout)],
    ["e", Buffer.from(stderr)],
  ]);
}

const refused = (thrown: unknown): Answer => {
  const remedy = thrown instanceof HarnessError && thrown.remedy !== "" ? `\n  next: ${thrown.remedy}` : "";
  return { code: 128, stdout: "", stderr: `fatal: ${reasonOf(thrown)}${remedy}\n` };
};

async function made({ engine, plan, home }: DoorRequest, payload: Buffer): Promise<Answer> {
  const { folder, words, config } = readAsked(payload);
  const workspace = plan.workspace?.path ?? "";
  const found = await findRepository(workspace, folder, plan.user.uid);
  if (found === undefined || !isProtected(plan, found)) return DO_IT_YOURSELF;
  const identity = await commitIdentity(home, config);
  const commit = commitPlan({ workspace, ...found, identity }, words);
  const over = await present(commit.mounts);
  await using stack = new AsyncDisposableStack();
  const { client, close } = await verifiedContainer(engine, { ...plan, over });
  stack.defer(close);
  const command = { words: commit.argv, env: commit.env, folder, timeoutMs: COMMIT_MS, keep: KEEP };
  const { exit_code, stdout, stderr } = await startCommand(client, command, { workspace }).ended;
  const text = ({ head, tail }: typeof stdout): string => Buffer.concat([head, tail]).toString("utf8");
  return { code: exit_code, stdout: text(stdout), stderr: text(stderr) };
}

function readAsked(payload: Buffer): Asked {
  const fields = decodeFields(payload);
  const all = (name: string): readonly string[] =>
    fields.filter((field) => field.name === name).map(({ bytes }) => textOfBytes(bytes));
  return { folder: all("d")[0] ?? "", words: all("a"), config: all("k") };
}

const isProtected = ({ readOnly }: BoxPlan, { gitDir }: FoundRepository): boolean =>
  readOnly.some((folder) => within(folder, gitDir));

async function present(
  mounts: ReturnType<typeof commitPlan>["mounts"],
): Promise<NonNullable<BoxPlan["over"]>> {
  const there = await Promise.all(
    mounts.map(
      async ({ path, optional }) =>
        !optional ||
        (await lstat(path).then(
          () => true,
          () => false,
        )),
    ),
  );
  return mounts.filter((_, index) => there[index]).map(({ path, writable }) => ({ path, writable }));
}
