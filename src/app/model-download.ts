import { readFile, rm } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { formatSize } from "../core/wording.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import { downloadOf } from "../models/model-kinds.ts";
import { pullModel, type PullProgress } from "../models/providers/ollama-setup.ts";
import { replaceFile } from "../platform/safe-files.ts";
import type { SetupContext } from "./setup-steps.ts";
import { makeFolder } from "../platform/folders.ts";

/** A download that was agreed to and is incomplete: it continues at the next start without another question. */
const pendingForm = z.strictObject({
  model: z.string().max(500),
  server: z.string().max(2000),
  /** Bytes that the server had when this was written; the server keeps them. */
  completed: z.number().min(0),
  total: z.number().min(0),
});
export type PendingDownload = z.infer<typeof pendingForm>;

const fileOf = ({ host }: Pick<SetupContext, "host">): string =>
  path.join(host.places.state, "model-download.json");

/** The pending download of this model from this server; undefined if there is none, or its record cannot be read. */
export async function pendingDownload(
  context: Pick<SetupContext, "host">,
  server: string,
  model: string,
): Promise<PendingDownload | undefined> {
  try {
    const found = pendingForm.parse(JSON.parse(await readFile(fileOf(context), "utf8")));
    return found.server === server && found.model === model ? found : undefined;
  } catch {
    return undefined;
  }
}

/** A record that cannot be kept costs only a question at the next start. */
async function keep(context: SetupContext, pending: PendingDownload): Promise<void> {
  try {
    const file = fileOf(context);
    makeFolder(path.dirname(file));
    await replaceFile(file, `${JSON.stringify(pending)}\n`, { lasts: "content" });
  } catch {
    return;
  }
}

const forget = (context: SetupContext): Promise<void> =>
  rm(fileOf(context), { force: true }).catch(() => undefined);

export const partOf = ({ completed, total }: Pick<PendingDownload, "completed" | "total">): string =>
  `${formatSize(completed)} of ${formatSize(total)}`;

/** The bytes of a download over all its parts, which its progress reports one after the other. */
export class DownloadTotals {
  readonly #parts = new Map<string, { readonly completed: number; readonly total: number }>();

  take({ status, completed, total }: PullProgress): void {
    if (total === null) return;
    const before = this.#parts.get(status)?.completed ?? 0;
    this.#parts.set(status, { completed: completed ?? before, total });
  }

  get sum(): { readonly completed: number; readonly total: number } {
    const sum = { completed: 0, total: 0 };
    for (const { completed, total } of this.#parts.values()) {
      sum.completed += completed;
      sum.total += total;
    }
    return sum;
  }
}

/** How often the record of a download is updated, in case the start is killed. */
const KEEP_MS = 5000;

export type Downloaded =
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly reason: string; readonly remedy: string };

/**
 * Makes the server download a model, and shows the progress. Ctrl-C ends the download, and reports how much is there;
 * the server keeps that part, and the next start continues from it.
 */
export async function download(server: string, model: string, context: SetupContext): Promise<Downloaded> {
  const before = await pendingDownload(context, server, model);
  if (before !== undefined && before.completed > 0)
    context.onLine(`${model}: ${partOf(before)} are already here; the download continues from there`);
  const sum = { completed: before?.completed ?? 0, total: before?.total ?? downloadOf(model) ?? 0 };
  await keep(context, { model, server, ...sum });
  const totals = new DownloadTotals();
  let kept = performance.now();
  let writing: Promise<void> = Promise.resolve();
  const result = await pullModel({
    baseUrl: server,
    model,
    signal: context.signal,
    onProgress: (progress) => {
      totals.take(progress);
      const { completed, total } = totals.sum;
      if (progress.total === null || total === 0) context.onLine(`${model}: ${progress.status}`);
      else context.onAdvance({ done: completed, total, unit: "bytes", now: model });
      if (total > 0) Object.assign(sum, { completed, total });
      if (performance.now() - kept < KEEP_MS) return;
      kept = performance.now();
      writing = writing.then(() => keep(context, { model, server, ...sum }));
    },
  });
  await writing;
  if (result.kind === "done") {
    await forget(context);
    return result;
  }
  await keep(context, { model, server, ...sum });
  const there = sum.completed > 0 ? `; ${partOf(sum)} are kept` : "";
  if (result.kind === "cancelled")
    throw new HarnessError(
      EXIT.interrupted,
      `the download of ${model} was interrupted${there}`,
      "./start.sh   continues from there, without asking again",
    );
  return { kind: "failed", reason: `${model}: ${result.reason}${there}`, remedy: result.remedy };
}
