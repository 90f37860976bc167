import { readFile } from "node:fs/promises";
import * as z from "zod";
import type { ConfigRequest } from "../../config/load-config.ts";
import { parsedJson } from "../../core/raw-data.ts";
import { holdsMask } from "../../core/secrets.ts";
import { auditFile } from "../../sessions/audit-file.ts";

/** What the audit says about the start of a session's last run. */

const startForm = z.looseObject({
  kind: z.literal("run.started"),
  settings: z.record(z.string(), z.unknown()),
  versions: z.record(z.string(), z.string()),
});

const endForm = z.looseObject({ kind: z.literal("run.finished"), status: z.string() });

type Start = Pick<z.infer<typeof startForm>, "settings" | "versions">;

const NO_START: Start = { settings: {}, versions: {} };

/** Settings and versions of the most recent run. */
export const lastRunIn = (audit: Buffer): Start => startsIn(audit).at(-1)?.start ?? NO_START;

/** The starts of all runs; `failed`: because of the model. */
function startsIn(audit: Buffer): readonly { readonly start: Start; readonly failed: boolean }[] {
  const runs: { start: Start; failed: boolean }[] = [];
  for (const line of audit.toString("utf8").split("\n")) {
    if (!line.startsWith('{"kind":"run.')) continue;
    const value = parsedJson(line);
    const start = startForm.safeParse(value).data;
    if (start !== undefined) runs.push({ start, failed: false });
    const last = runs.at(-1);
    if (last !== undefined && endForm.safeParse(value).data?.status === "model") last.failed = true;
  }
  return runs;
}

const settingForm = z.object({ value: z.string().nullable(), origin: z.string() });

/** The flags that choose a model. */
export interface ModelFlags {
  readonly model?: string | undefined;
  readonly provider?: string | undefined;
  readonly "base-url"?: string | undefined;
}

/**
 * The model of a session's last run that did not fail because of it, with its provider and address, as if they were
 * flags: what was said so far goes to the same server. Nothing if nobody had chosen it, or if flags name a provider or an
 * address.
 */
export async function modelOfSession(
  stateDir: string,
  id: string,
  flags: ModelFlags,
): Promise<ConfigRequest["flags"]> {
  const none = new Map<string, never>();
  if (flags.provider !== undefined || flags["base-url"] !== undefined) return none;
  const audit = await readFile(auditFile(stateDir, id)).catch(() => Buffer.alloc(0));
  const { settings } = startsIn(audit).findLast(({ failed }) => !failed)?.start ?? NO_START;
  const keys = ["provider", "base_url", "chat_model"] as const;
  const read = keys.map((key) => [key, settingForm.safeParse(settings[key]).data] as const);
  const isKnown = read.every(([, each]) => each !== undefined && !holdsMask(each.value ?? ""));
  if (!isKnown || read.every(([, each]) => each?.origin === "default")) return none;
  return new Map(read.map(([key, each]) => [`the ${key} of ${id}`, { key, value: each?.value ?? null }]));
}
