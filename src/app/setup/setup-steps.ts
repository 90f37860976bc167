import path from "node:path";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { engineRemedy, installEngine, startDaemon } from "../../docker/engine-install.ts";
import { type Engine, isEngine, type NoEngine } from "../../docker/engine.ts";
import { isDebianLike, readSystem, type System } from "../../platform/host-programs.ts";
import { ensureImage, imageExists } from "../../docker/box-image.ts";
import { checkImage } from "../../docker/engine-health.ts";
import { stderr } from "../../render/tty/output.ts";
import { type Advance, ProgressLine } from "../../render/tty/progress-line.ts";
import { stepLine, type StepLine } from "../../render/lists/search-lines.ts";
import { lookForEngine, noEngine } from "../box-access.ts";
import { done, type SetupContext, standIn, type StepResult } from "./setup-context.ts";
import { describeFailure } from "../stderr-messages.ts";

/** Prints each step as one line with its time; a failed step is printed too, and ends the set-up. */
export class Steps {
  readonly #quiet: boolean;
  readonly #signal: AbortSignal;
  #line: ProgressLine | undefined;
  /** Every step that did not fail, in order. */
  readonly taken: StepLine[] = [];

  constructor(quiet: boolean, signal: AbortSignal) {
    this.#quiet = quiet;
    this.#signal = signal;
  }

  /** Shows what the step is doing. */
  readonly progress = (text: string): void => this.#line?.line(text);
  readonly advance = (far: Advance): void => this.#line?.take(far);

  /** Asks a question while the step's progress is off the screen. */
  async asking<T>(question: () => Promise<T>): Promise<T> {
    const resume = this.#line?.pause();
    try {
      return await question();
    } finally {
      resume?.();
    }
  }

  async run<T>(name: string, work: () => Promise<T>, say: (value: T) => StepResult): Promise<T> {
    const start = performance.now();
    this.#line = new ProgressLine(stderr, { what: `  ${name}`, quiet: this.#quiet, endIsTold: true });
    try {
      const value = await work();
      this.#signal.throwIfAborted();
      this.#print(name, say(value), start);
      return value;
    } catch (thrown) {
      if (!(thrown instanceof HarnessError)) throw thrown;
      const { message, remedy } = describeFailure(thrown, []);
      this.#print(name, { state: "fail", detail: message, remedy, short: message }, start);
      throw new HarnessError(thrown.exit, "", "", thrown);
    } finally {
      this.#line.end();
    }
  }

  #print(name: string, result: StepResult, start: number): void {
    this.#line?.end();
    this.taken.push({ name, ...result });
    if (this.#quiet && result.state !== "fail") return;
    stderr.write(stepLine({ name, ...result }, performance.now() - start, stderr));
  }
}

/** An engine that answers: the existing one, or one that is started or installed; otherwise exit 6. */
export async function engineStep(context: SetupContext): Promise<Engine> {
  const found = await lookForEngine(context.host);
  if (isEngine(found)) return found;
  const system = await readSystem(context.host.env);
  if (!mayMend(found, system, context.mayInstall)) throw noEngine(found, engineRemedy(system, found));
  if (!system.dockerd) {
    context.onLine("installing docker.io from the distribution");
    await installEngine({ ...context, env: context.host.env });
    const started = await lookForEngine(context.host);
    if (isEngine(started)) return started;
  }
  context.onLine("starting the engine");
  return startDaemon(system, {
    ...context,
    env: context.host.env,
    logFile: path.join(context.host.places.state, "dockerd.log"),
  });
}

/** An engine that the user named is never replaced, and a protected socket is never worked around. */
function mayMend(found: NoEngine, system: System, mayInstall: boolean): boolean {
  if (found.origin !== "usual socket" || found.kind === "denied" || !system.root) return false;
  return mayInstall && (system.dockerd || isDebianLike(system));
}

export const describeEngine = ({ version, endpoint }: Engine): string =>
  `${version.name} ${version.version} at ${endpoint.host}${endpoint.origin === "usual socket" ? "" : ` (${endpoint.origin})`}`;

/** Our image, built if missing; or the user's own, checked for what the runner needs. */
export async function imageStep(engine: Engine, context: SetupContext): Promise<StepResult> {
  const own = context.config.settings.image;
  if (own !== null) return foreignImage(engine, context.root, own);
  const built = await ensureImage(engine, {
    ...context,
    env: context.host.env,
    cache: context.host.places.cache,
  });
  if (built.how === "kept") return done(`${built.tag} (${built.how})`);
  const check = await checkImage(engine, context.root, built.tag);
  const lacking = [...check.missing, ...check.absent];
  if (lacking.length === 0) return done(`${built.tag} (${built.how})`);
  const message = `the image that was built lacks ${lacking.join(", ")}`;
  throw new HarnessError(EXIT.sandbox, message, "harness sandbox build --rebuild");
}

async function foreignImage(engine: Engine, root: string, image: string): Promise<StepResult> {
  if (!(await imageExists(engine, image))) {
    const message = `no image ${image} on this engine`;
    throw new HarnessError(
      EXIT.sandbox,
      message,
      `docker pull ${image}   (or: harness config set image null)`,
    );
  }
  const check = await checkImage(engine, root, image);
  if (check.missing.length > 0) {
    const message = `the image ${image} lacks what the runner needs: ${check.missing.join(", ")}`;
    throw new HarnessError(EXIT.sandbox, message, `add it to ${image}, or: harness config set image null`);
  }
  if (check.absent.length === 0) return done(`${image} (yours)`);
  const lacking = check.absent.join(", ");
  return standIn(`${image}, instead of ours`, `${image} (yours); without ${lacking}, which some tasks need`);
}
