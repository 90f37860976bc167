import { tmpdir } from "node:os";
import path from "node:path";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { ATTACKED_LIMITS, makeAttackTarget, runBattery } from "../../docker/attack/battery.ts";
import { type Outcome, type PromiseKept, promisesKept } from "../../docker/attack/attack.ts";
import { startBox } from "../../docker/box/start-box.ts";
import { requireEngine } from "../box-access.ts";
import { type Host, packageRoot } from "../host.ts";

export interface AttackRequest {
  readonly image: string | null;
  readonly runtime: string | null;
}

export interface AttackReport {
  readonly ok: boolean;
  readonly exit_code: number;
  readonly engine: string;
  readonly runtime: string;
  readonly took_ms: number;
  readonly promises: readonly PromiseKept[];
  readonly attacks: readonly Outcome[];
}

/** The owner of the workspace if root runs the attacks: an ordinary user. */
const ORDINARY = 1000;

/** Reports what boxes of this machine and engine permit, in a workspace that is made for this and thrown away. */
export async function attackBoxes(
  host: Host,
  request: AttackRequest,
  signal: AbortSignal,
): Promise<AttackReport> {
  const begin = performance.now();
  const engine = await requireEngine(host, signal);
  const { home, state, cache } = host.places;
  const { uid } = host;
  const { image, runtime } = request;
  // Root's own folders are closed to others, and the attacker in the box is an ordinary user.
  await using target = await (uid === 0
    ? makeAttackTarget(tmpdir(), ORDINARY)
    : makeAttackTarget(path.join(cache, "attack"), null));
  const maker = { engine, root: packageRoot, uid, home, stateDir: state, onWarning: () => undefined };
  const shape = { mode: "workspace-write", image, limits: ATTACKED_LIMITS, runtime, keep: null } as const;
  const failed: { why?: unknown } = {};
  const attacks = await runBattery(
    {
      target,
      facts: { env: host.env },
      ownKernel: /^(?:runsc|gvisor)/.test(runtime ?? ""),
      open: (isolation, on) =>
        startBox(maker, { ...shape, workspace: target.workspace, isolation, watchChanges: false }, on).catch(
          (thrown: unknown) => {
            if (isolation === "bind") failed.why = thrown;
            throw thrown;
          },
        ),
    },
    signal,
  );
  if (failed.why instanceof HarnessError) throw failed.why;
  const ok = attacks.every(({ state: each }) => each === "held");
  return {
    ok,
    exit_code: ok ? EXIT.done : EXIT.failed,
    engine: `${engine.version.name} ${engine.version.version}`,
    runtime: runtime ?? "the engine's own",
    took_ms: Math.round(performance.now() - begin),
    promises: promisesKept(attacks),
    attacks,
  };
}
