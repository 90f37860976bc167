import { cp, lchown, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { formatDuration } from "../../core/bounds.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { Engine } from "../../docker/engine.ts";
import { wantedImage } from "../../docker/images/build.ts";
import { ownerLabels } from "../../docker/labels.ts";
import { type Outcome, runOnce } from "../../docker/oneshot.ts";
import { demoStep } from "../../render/tty/demo.ts";
import { answer, answerJson, HarnessCommand } from "../command.ts";
import { DEMO, type DemoStep } from "../demo/script.ts";
import { untilInterrupted } from "../interrupt.ts";
import { packageRoot } from "../package-root.ts";
import { configFor, settingFlags } from "../settings.ts";
import { requireEngine, uid } from "../wire.ts";

interface Shown {
  readonly step: DemoStep;
  readonly outcome: Outcome;
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
    const engine = await requireEngine();
    const image = settings.image ?? (await builtImage(engine));
    const start = performance.now();
    const shown = await untilInterrupted((signal) =>
      inCopy((workspace) =>
        play({ engine, image, workspace, signal, settings }, (step) => {
          if (!flags.json && !flags.quiet) process.stderr.write(demoStep(step, process.stderr));
        }),
      ),
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

async function builtImage(engine: Engine): Promise<string> {
  const { tag, present } = await wantedImage(engine, packageRoot);
  if (present) return tag;
  throw new HarnessError(
    EXIT.sandbox,
    `the sandbox image ${tag} is not built`,
    "./start.sh   (or: harness sandbox build)",
  );
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

interface Stage {
  readonly engine: Engine;
  readonly image: string;
  readonly workspace: string;
  readonly signal: AbortSignal;
  readonly settings: { readonly memory: number; readonly pids: number };
}

async function play(stage: Stage, show: (shown: Shown) => void): Promise<readonly Shown[]> {
  const shown: Shown[] = [];
  for (const step of DEMO) {
    stage.signal.throwIfAborted();
    const start = performance.now();
    const outcome = await runOnce(
      stage.engine,
      {
        root: packageRoot,
        image: stage.image,
        argv: ["bash", "-c", step.command],
        user: {
          uid: ownerId(),
          gid: process.getgid?.() === 0 ? ownerId() : (process.getgid?.() ?? 0),
        },
        workspace: stage.workspace,
        memory: stage.settings.memory,
        pids: stage.settings.pids,
        labels: ownerLabels(uid()),
      },
      30_000,
    );
    const asExpected = outcome.exit_code !== null && (outcome.exit_code === 0) === (step.ends === "zero");
    const one = { step, outcome, asExpected, ms: performance.now() - start };
    shown.push(one);
    show(one);
    if (!asExpected) break;
  }
  return shown;
}
