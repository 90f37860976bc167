import type { Host } from "../../app/host.ts";
import { untilInterrupted } from "../../app/interruption.ts";
import type { Config } from "../../config/load-config.ts";
import { HarnessError, type Health } from "../../core/errors.ts";
import { visible } from "../../core/visible.ts";
import { widthOfStream, wrapped } from "../../render/tty/columns.ts";
import { type Output, stderr, styleText } from "../../render/tty/output.ts";
import { ProgressLine } from "../../render/tty/progress-line.ts";
import { healthTable } from "../../render/lists/setup-lines.ts";
import { configFor } from "../settings.ts";
import { choose, confirm } from "../terminal.ts";

/**
 * For a user who starts a chat without ever having chosen a model: shows what a run needs of this machine, and offers
 * to mend what is missing. The chat begins in any case.
 */
export async function welcome(
  host: Host,
  flags: Readonly<Record<string, unknown>> & { readonly quiet: boolean },
): Promise<void> {
  const config = await configFor(flags);
  if (flags.quiet || isChosen(config)) return;
  const { firstChecks, modelChecks } = await import("../../app/checkup.ts");
  const { isWelcomed, noteWelcome } = await import("../../app/first-run.ts");
  if (isWelcomed(host) && !hasFailed(await modelChecks(host, config.settings), "model")) return;
  await untilInterrupted(async (signal) => {
    stderr.write(headline(stderr));
    const checks = await runChecks(() => firstChecks(host, config.settings));
    stderr.write(`${healthTable(checks, stderr)}\n`);
    if (hasFailed(checks, "image")) await offerImage(host, signal);
    if (hasFailed(checks, "model")) await offerModel(host, signal);
  }, "harness doctor");
  await noteWelcome(host);
}

const KEYS = ["provider", "chat_model", "base_url"] as const;

const isChosen = ({ origins }: Config): boolean =>
  KEYS.some((key) => (origins[key] ?? "default") !== "default");

const hasFailed = (checks: readonly Health[], what: string): boolean =>
  checks.some(({ id, state }) => state === "fail" && (id === what || id.startsWith(`${what}.`)));

const headline = (stream: Output): string =>
  `${styleText("bold", "Welcome to harness.", { stream })} No model is chosen yet. What harness found on this machine:\n\n`;

async function runChecks(look: () => Promise<readonly Health[]>): Promise<readonly Health[]> {
  using _ = new ProgressLine(stderr, { what: "looking", quiet: false, endIsTold: true });
  return await look();
}

async function offerImage(host: Host, signal: AbortSignal): Promise<void> {
  const question = "The sandbox image is not built. Build it now? It takes some minutes, once.";
  if (!(await confirm(question, false, signal))) return;
  const { buildImage } = await import("../../app/boxes/own-boxes.ts");
  using progress = new ProgressLine(stderr, { what: "sandbox image", quiet: false });
  await orReport(async () => (await buildImage(host, { rebuild: false, onLine: progress.line }))(signal));
}

/** Offers a model as `harness init` does. */
async function offerModel(host: Host, signal: AbortSignal): Promise<void> {
  const run = await import("../../app/first-run.ts");
  await orReport(async () => {
    const own = await run.ownSettings(host);
    const answers = await run.askPlaces(run.serverPlaces(host, own), signal);
    const offers = run.wantedOffers(run.rankedOffers(answers, own), answers, undefined);
    const rows = offers.map((offer) => run.rowOf(offer));
    const at = await choose("These chat models are on this machine:", rows, { yes: false, signal });
    const chosen = at === null ? undefined : offers[at];
    if (chosen === undefined) return;
    const [file] = host.places.configFiles;
    const changes = run.changesFor(chosen, own);
    const lines = changes.map(({ key, value }) => `  ${key} = ${value}`);
    stderr.write(visible(`To be written to ${file}:\n${lines.join("\n")}\n`));
    if (await confirm("Write this?", false, signal)) await run.writeChanges(file, changes);
  });
}

/** Reports a failure with what to type next, without keeping the person from the chat. */
async function orReport(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (thrown) {
    if (!(thrown instanceof HarnessError)) throw thrown;
    const text = [...wrapped(thrown.message, widthOfStream(stderr) - 1), `  next: ${visible(thrown.remedy)}`];
    stderr.write(`${text.join("\n")}\n\n`);
  }
}
