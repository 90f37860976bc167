import { setTimeout as sleep } from "node:timers/promises";
import { EXIT, HarnessError } from "../core/errors.ts";
import type { ExecResult, Job, OwnedBox } from "../core/ports.ts";
import { visible } from "../core/visible.ts";
import type { BoxEnvironment } from "../docker/environments/environment-mounts.ts";

type Service = BoxEnvironment["services"][number];

const PATIENCE_MS = 60_000;
const LOOK_MS = 100;
const HEALTH_MS = 10_000;
const KEEP = { head: 0, tail: 16 * 1024 };

/**
 * Starts the services that the project's tests need, in parallel to the commands of a box, and waits until all are
 * usable. A service runs in the box, as its user, on the box's own loopback, and ends with the box: nothing outside can
 * reach it.
 */
async function startServices(
  box: OwnedBox,
  services: readonly Service[],
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(
    services
      .filter(({ name }) => box.kept?.has(jobName(name)) !== true)
      .map((service) => startOne(box, service, signal)),
  );
}

/** The box once its services are usable; if one fails, the box is closed and the error thrown. */
export async function withServices(
  starting: Promise<OwnedBox>,
  services: readonly Service[],
  signal: AbortSignal,
): Promise<OwnedBox> {
  const box = await starting;
  if (services.length === 0) return box;
  try {
    await startServices(box, services, signal);
    return box;
  } catch (thrown) {
    await box[Symbol.asyncDispose]();
    throw thrown;
  }
}

const jobName = (name: string): string => `service-${name}`;

async function startOne(box: OwnedBox, service: Service, signal: AbortSignal): Promise<void> {
  const { name, start, health } = service;
  const words = ["sh", "-c", `exec 2>&1\n${start}`];
  const job = box.start({ words, timeoutMs: 0, keep: { ...KEEP, head: 4096 }, name: jobName(name) });
  const over: { result?: ExecResult } = {};
  job.result.then(
    (result) => (over.result = result),
    () => undefined,
  );
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    signal.throwIfAborted();
    if (over.result !== undefined) throw failed(service, `it exited with code ${over.result.exit_code}`, job);
    const asked = { words: ["sh", "-c", health], timeoutMs: HEALTH_MS, keep: KEEP };
    if ((await box.exec(asked, signal)).exit_code === 0) return;
    if (performance.now() > until)
      throw failed(service, `its health command did not succeed within ${PATIENCE_MS / 1000} s`, job);
    await sleep(LOOK_MS);
  }
}

const LAST_LINES = 8;

function failed({ name }: Service, why: string, job: Job): HarnessError {
  const said = Buffer.from(job.output().stdout).toString("utf8").trimEnd().split("\n").slice(-LAST_LINES);
  const lines = said.map((line) => `\n    ${visible(line.slice(0, 300))}`).join("");
  return new HarnessError(
    EXIT.sandbox,
    `the service ${name} could not be used: ${why}${lines}`,
    "fix its start or health line in the recipe, or leave the environment out: --env none",
  );
}
