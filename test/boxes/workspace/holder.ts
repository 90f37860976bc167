/**
 * A process that locks on request, for tests that kill it. It reads one JSON request per line and prints one answer
 * each: `{lock}` -> "held" or the refusal; `{release: true}` -> "released"; `{loop, inside}` locks and releases for
 * ever.
 */
import { readFile, stat, unlink, writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { lockWorkspace } from "../../../src/boxes/workspace/workspace-lock.ts";
import { HarnessError } from "../../../src/core/errors.ts";

interface LockRequest {
  readonly path: string;
  readonly write: boolean;
  readonly stateDir: string;
}

interface Request {
  readonly lock?: LockRequest;
  readonly release?: boolean;
  readonly loop?: LockRequest;
  /** Created while the lock is held; if it exists already, two processes are inside. */
  readonly inside?: string;
}

const say = (text: string): void => void process.stdout.write(`${text}\n`);

async function take(wanted: LockRequest): Promise<AsyncDisposable> {
  const { dev, ino } = await stat(wanted.path);
  return await lockWorkspace({ ...wanted, dev, ino });
}

async function loop(wanted: LockRequest, inside: string): Promise<never> {
  say("looping");
  for (;;)
    try {
      await using _ = await take(wanted);
      await enter(inside);
      await unlink(inside);
    } catch (thrown) {
      if (!(thrown instanceof HarnessError)) throw thrown;
    }
}

/** A process that was killed inside left its mark; the mark of a living one is the fault that the test looks for. */
async function enter(inside: string): Promise<void> {
  for (;;)
    try {
      await writeFile(inside, String(process.pid), { flag: "wx" });
      return;
    } catch {
      const pid = Number(await readFile(inside, "utf8").catch(() => "0"));
      const running = pid !== 0 && (await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "Z"));
      if (typeof running === "string" && !/\) [ZX] |^Z$/.test(running)) {
        say(`both inside: ${pid} and ${process.pid}`);
        process.exit(1);
      }
      await unlink(inside).catch(() => undefined);
    }
}

let held: AsyncDisposable | undefined;
say("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line) as Request;
  if (request.loop !== undefined) void loop(request.loop, request.inside ?? "");
  if (request.lock !== undefined)
    try {
      held = await take(request.lock);
      say("held");
    } catch (thrown) {
      say(thrown instanceof HarnessError ? thrown.message : String(thrown));
    }
  if (request.release === true) {
    await held?.[Symbol.asyncDispose]();
    say("released");
  }
}
