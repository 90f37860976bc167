import { formatDuration } from "../../core/text/bounds.ts";
import { HarnessError, reasonOf } from "../../core/errors.ts";
import { broken, type Health, healthy } from "../../core/health.ts";
import { ownerLabels } from "../../boxes/box-labels.ts";
import { type Engine, hostFacts, readSeccomp } from "../engine.ts";
import { thisProcess } from "../../boxes/life/owner.ts";
import { startCommand } from "../../boxes/box-command.ts";
import { boxImage, RUNNER } from "./box-image.ts";
import { verifiedContainer } from "./container.ts";

const NOBODY = 65_534;
const LIMITS = { memory: 2 ** 28, cpus: null, pids: 64 };
const KEEP = { head: 1024, tail: 0 };

export interface BoxCheck {
  /** The folder of the installed package. */
  readonly root: string;
  readonly uid: number;
  /** The user's own image; null for ours. */
  readonly image: string | null;
}

/** Whether a box of the image starts as planned and runs a command, which every tool call depends on. */
export async function boxHealth(engine: Engine, check: BoxCheck): Promise<Health> {
  const begin = performance.now();
  try {
    const [{ id, volumes }, host, seccomp, owner] = await Promise.all([
      boxImage(engine, check.root, check.image),
      hostFacts(engine),
      readSeccomp(check.root),
      thisProcess(),
    ]);
    await using stack = new AsyncDisposableStack();
    const { client, close } = await verifiedContainer(engine, {
      image: id,
      argv: [RUNNER],
      mode: "read-only",
      user: { uid: NOBODY, gid: NOBODY },
      readOnly: [],
      pinned: [],
      volumes,
      limits: LIMITS,
      host,
      seccomp,
      stdin: true,
      labels: ownerLabels(check.uid, owner),
    });
    stack.defer(close);
    const ready = performance.now() - begin;
    const command = { words: ["sh", "-c", "exit 0"], timeoutMs: 10_000, keep: KEEP };
    const { exit_code, reason, duration_ms } = await startCommand(client, command, { workspace: "/" }).ended;
    if (exit_code !== 0)
      return broken("box", `a command in a box failed: ${reason}`, "harness sandbox shell");
    const detail = `verified in ${formatDuration(ready)}, a command in ${duration_ms.toFixed(1)} ms`;
    return healthy("box", detail);
  } catch (thrown) {
    const remedy = thrown instanceof HarnessError ? thrown.remedy : "./start.sh";
    return broken(
      "box",
      reasonOf(thrown),
      remedy === "harness doctor" ? "the engine's log says why" : remedy,
    );
  }
}
