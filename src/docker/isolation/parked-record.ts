import { createHmac } from "node:crypto";
import * as z from "zod";
import { boxFilter, boxOf } from "../../boxes/box-labels.ts";
import { parsedJson } from "../../core/text/json-values.ts";
import type { Engine } from "../engine.ts";
import { type KeptJob, keptJob } from "../../boxes/jobs.ts";
import type { HostFile } from "../../boxes/protect/replaced.ts";
import type { PausedRunner } from "../../boxes/runner/runner-client.ts";
import { KEY_BYTES } from "../../boxes/runner/runner-frames.ts";
import type { SessionRef } from "./parked-files.ts";

/** The layers of a frozen box are mounted already and cannot be mounted twice: this volume gives access to them. */
export async function frozenVolume(
  engine: Engine,
  { uid, stateDir, session }: SessionRef,
): Promise<string | undefined> {
  const { Volumes } = await engine.api.listVolumes({ filters: boxFilter(uid) });
  const own = (Volumes ?? []).find(({ Labels }) => {
    const parks = boxOf(Labels)?.parks;
    return parks?.session === session && parks.stateDir === stateDir;
  });
  return own?.Name;
}

/** What is needed to resume a frozen box. */
export interface ParkedBox {
  readonly container: string;
  /** All labels of the container: they record how it was made and to whom it belongs. */
  readonly labels: Readonly<Record<string, string>>;
  /** Mounted in place of the workspace. */
  readonly volume: string | null;
  /** Whether the box was made with host files as its lists of users. */
  readonly named: boolean;
  /** The folder of the box's network on the host; null if it has none. */
  readonly network: string | null;
  /** The host files that its mounts covered when it was verified. */
  readonly files: readonly HostFile[];
  readonly runner: PausedRunner;
  readonly jobs: readonly KeptJob[];
}

const digits = z.string().regex(/^\d+$/);

const form = z.strictObject({
  form: z.literal(4),
  container: z.string().regex(/^[0-9a-f]{64}$/),
  labels: z.record(z.string(), z.string()),
  volume: z.string().nullable(),
  named: z.boolean(),
  network: z.string().nullable(),
  files: z.array(z.strictObject({ path: z.string(), dev: digits, ino: digits, born: digits })),
  key: z.string().regex(new RegExp(`^[0-9a-f]{${KEY_BYTES * 2}}$`)),
  next: z.int().min(1).max(0xffff_ffff),
  asks: z.array(z.strictObject({ call: z.int().min(0), payload: z.base64() })),
  jobs: z.array(keptJob),
});

const whole = z.strictObject({ seal: z.string(), box: z.unknown() });

/** Detects accidental changes; it does not stop somebody who can read the key. */
const sealOf = (key: string, box: string): string => createHmac("sha256", key).update(box).digest("hex");

export function parkedText(parked: ParkedBox): string {
  const { container, labels, volume, named, network, files, runner, jobs } = parked;
  const key = runner.key.toString("hex");
  const asks = runner.asks.map(({ call, payload }) => ({ call, payload: payload.toString("base64") }));
  const { next } = runner;
  const box = { form: 4, container, labels, volume, named, network, files, key, next, asks, jobs };
  return JSON.stringify({ seal: sealOf(key, JSON.stringify(box)), box });
}

/** Undefined unless the text is exactly what was written. */
export function readParked(text: string): ParkedBox | undefined {
  const outer = whole.safeParse(parsedJson(text));
  const inner = form.safeParse(outer.data?.box);
  if (!outer.success || !inner.success) return undefined;
  const { container, labels, volume, named, network, files, key, next, asks, jobs } = inner.data;
  if (outer.data.seal !== sealOf(key, JSON.stringify(outer.data.box))) return undefined;
  const late = asks.map(({ call, payload }) => ({ call, payload: Buffer.from(payload, "base64") }));
  return {
    container,
    labels,
    volume,
    named,
    network,
    files,
    runner: { key: Buffer.from(key, "hex"), next, asks: late },
    jobs,
  };
}
