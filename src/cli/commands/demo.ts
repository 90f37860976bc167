import { cp, lchown, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { formatDuration } from "../../core/bounds.ts";
import type { Box } from "../../core/ports.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { keptText } from "../../render/exec-json.ts";
import { demoStep } from "../../render/tty/demo.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { DEMO, type DemoStep } from "../demo/script.ts";
import { untilInterrupted } from "../interrupt.ts";
import { packageRoot } from "../package-root.ts";
import { configFor, settingFlags } from "../settings.ts";
import { openBoxFor, uid } from "../wire.ts";

interface Shown {
  readonly step: DemoStep;
  readonly outcome: { readonly exit_code: number; readonly stdout: string; readonly stderr: string };
  readonly asExpected: boolean;
  readonly ms: number;
}

export class Demo extends HarnessCommand {
  static override summary = "See the box at work on a small repository with a failing test.";
  static override description =
    "The commands are written in the demo, no model proposes them; the box they run in is the real one. Works on a copy that is thrown away.";
  static override flags = { image: settingFlags.image, memory: settingFlags.memory, pids: settingFlags.pids };

  async run(): Promise<void> {
    const { flags } = await this.parse(Demo);
    const { settings } = await configFor(flags);
    const start = performance.now();
    const shown = await inCopy((workspace) =>
      untilInterrupted(async (signal) => {
        const opening = { settings, workspace, runtime: null, watchChanges: false, warn: () => undefined };
        await using box = await openBoxFor(opening, signal);
        return await play(box, signal, (step) => {
          if (!flags.json && !flags.quiet) process.stderr.write(demoStep(step, process.stderr));
        });
      }),
    );
    const good = shown.every(({ asExpected }) => asExpected);
    const ms = performance.now() - start;
    if (flags.json) answerJson({ ok: good, steps: shown });
    else
      answer(
        good
          ? `all ${shown.length} steps went as they should, in ${formatDuration(ms)}`
          : "a step did not go as it should",
      );
    process.exitCode = good ? EXIT.done : EXIT.failed;
  }
}

/** A copy owned by an ordinary user even where harness runs as root. */
async function inCopy<T>(work: (workspace: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), "harness-demo-")).catch(noCopy);
  try {
    await fill(folder).catch(noCopy);
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function fill(folder: string): Promise<void> {
  await cp(path.join(packageRoot, "examples", "broken-sum"), folder, { recursive: true });
  const owner = ownerId();
  if (uid() !== 0) return;
  for (const name of ["", ...(await readdir(folder))]) await lchown(path.join(folder, name), owner, owner);
}

function noCopy(thrown: unknown): never {
  const message = `the demo's copy could not be made in ${tmpdir()}: ${reasonOf(thrown)}`;
  throw new HarnessError(EXIT.failed, message, "TMPDIR=/a/folder/with/space harness demo", thrown);
}

const ownerId = (): number => (uid() === 0 ? 65_534 : uid());

/** Plays until a step goes otherwise than it should: what follows would rest on it. */
async function play(box: Box, signal: AbortSignal, show: (shown: Shown) => void): Promise<readonly Shown[]> {
  const shown: Shown[] = [];
  for (const step of DEMO) {
    const words = ["bash", "-c", step.command];
    const result = await box.exec({ words, timeoutMs: 30_000, keep: KEEP }, signal);
    signal.throwIfAborted();
    const outcome = {
      exit_code: result.exit_code,
      stdout: keptText(result.stdout),
      stderr: keptText(result.stderr),
    };
    const asExpected = !result.timed_out && (outcome.exit_code === 0) === (step.ends === "zero");
    const one = { step, outcome, asExpected, ms: result.duration_ms };
    shown.push(one);
    show(one);
    if (!asExpected) break;
  }
  return shown;
}

const KEEP = { head: 32 * 1024, tail: 32 * 1024 };
